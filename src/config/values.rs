//! Durations and addresses in settings.
//!
//! Must never know: keys.

/// Durations such as `10s`; days are the longest unit.
pub(super) mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::model::Span;

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        match text.parse().map_err(D::Error::custom)? {
            Span::Fixed(ms) => Ok(Duration::from_millis(ms as u64)),
            Span::Months(_) => {
                Err(D::Error::custom(format!("{text:?} must be in days or smaller units")))
            }
        }
    }

    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Duration,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let ms = i64::try_from(value.as_millis()).unwrap_or(i64::MAX);
        to.collect_str(&Span::Fixed(ms))
    }
}

/// A duration, or `""`.
pub(super) mod duration_or_none {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::IntoDeserializer};

    use super::duration;

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() {
            return Ok(None);
        }
        duration::deserialize(text.into_deserializer()).map(Some)
    }

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            None => to.serialize_str(""),
            Some(duration) => duration::serialize(duration, to),
        }
    }
}

/// A maximum size on the disk, or `""`.
pub(super) mod disk_max_or_none {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::policy::retention::budget::DiskMax;

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<DiskMax>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(D::Error::custom) }
    }

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<DiskMax>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            None => to.serialize_str(""),
            Some(max) => to.collect_str(max),
        }
    }
}

/// An address with a port; a host name is resolved.
pub(super) mod address {
    use std::net::{SocketAddr, ToSocketAddrs};

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<SocketAddr, D::Error> {
        resolve(&String::deserialize(from)?).map_err(D::Error::custom)
    }

    pub(in crate::config) fn resolve(text: &str) -> Result<SocketAddr, String> {
        let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        found.ok_or_else(|| format!("{text:?} is not an address; use 127.0.0.1:7117"))
    }

    pub(in crate::config) fn serialize<S: Serializer>(
        value: &SocketAddr,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }
}

/// Times of failover by the prefixes of senders.
pub(super) mod failovers {
    use std::{collections::BTreeMap, fmt, time::Duration};

    use serde::{
        Deserialize, Deserializer, Serialize, Serializer,
        de::{MapAccess, Visitor},
    };

    /// A duration in a table.
    #[derive(Deserialize, Serialize)]
    #[serde(transparent)]
    struct Time(#[serde(with = "super::duration")] Duration);

    struct Table;

    impl<'de> Visitor<'de> for Table {
        type Value = BTreeMap<Box<str>, Duration>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(r#"prefixes with their time of failover, such as { "statsd-" = "30s" }"#)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((prefix, Time(time))) = entries.next_entry()? {
                all.insert(prefix, time);
            }
            Ok(all)
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<Box<str>, Duration>, D::Error> {
        from.deserialize_map(Table)
    }

    pub(in crate::config) fn serialize<S: Serializer>(
        all: &BTreeMap<Box<str>, Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_map(all.iter().map(|(prefix, time)| (prefix, Time(*time))))
    }
}

/// A role, or `""`.
pub(super) mod role_or_none {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::access::Role;

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Role>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() {
            return Ok(None);
        }
        let unknown = |_| {
            let names: Vec<_> = Role::ALL.iter().map(|role| role.as_str()).collect();
            D::Error::custom(format!("{text:?} is not a role; use {}", names.join(", ")))
        };
        text.parse().map(Some).map_err(unknown)
    }

    #[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(in crate::config) fn serialize<S: Serializer>(
        value: &Option<Role>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.map_or("", Role::as_str))
    }
}
