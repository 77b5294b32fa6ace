//! The state of the clock as chrony's daemon reports it, on its port for commands.

use std::{
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use granary_agent_kit::{SourceError, Stopwatch};

/// The port of chrony's commands; reading the state needs no privilege on the loopback interface.
const PORT: u16 = 323;
/// The time limit of a response.
const TIMEOUT: Duration = Duration::from_millis(200);
/// The length of the request and of the response, which are equal.
const MESSAGE_BYTES: usize = 104;
/// The version of the protocol, since chrony 1.30.
const VERSION: u8 = 6;
const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
/// The command "tracking" and its response.
const TRACKING: u16 = 33;
const TRACKING_RESPONSE: u16 = 5;
/// The leap status of a clock that is not synchronized.
const UNSYNCHRONIZED: u16 = 3;

/// A client of chrony.
#[derive(Debug)]
pub(super) struct Chrony {
    address: SocketAddr,
    sequence: u32,
}

/// The state of the clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tracking {
    pub(super) is_synchronized: bool,
    pub(super) stratum: u16,
    /// The seconds by which the clock is behind NTP.
    pub(super) offset: f64,
    pub(super) root_delay: f64,
    pub(super) root_dispersion: f64,
}

impl Chrony {
    /// Creates the client of this machine's daemon.
    pub(super) fn of_this_machine() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, PORT).into(), sequence: 0 }
    }

    /// Creates the client of a daemon whose next request has the number 7.
    #[cfg(test)]
    pub(super) fn for_tests(address: SocketAddr) -> Self {
        Self { address, sequence: 6 }
    }

    /// Returns the state, or `None` without chrony.
    pub(super) fn request(&mut self) -> Result<Option<Tracking>, SourceError> {
        self.sequence = self.sequence.wrapping_add(1);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(self.address)?;
        let clock = Stopwatch::start();
        // Without a listener, the kernel refuses the request or the response.
        if socket.send(&encode(self.sequence)).is_err() {
            return Ok(None);
        }
        let mut response = [0; MESSAGE_BYTES];
        loop {
            let time_left = clock.left_of(TIMEOUT);
            if time_left.is_zero() {
                return Err(format!("chrony did not answer within {TIMEOUT:?}").into());
            }
            socket.set_read_timeout(Some(time_left))?;
            match socket.recv(&mut response) {
                Ok(length) => {
                    let response = response.get(..length).unwrap_or_default();
                    if let Some(tracking) = decode(response, self.sequence)? {
                        return Ok(Some(tracking));
                    }
                }
                Err(cause) if cause.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(None),
            }
        }
    }
}

pub(super) fn encode(sequence: u32) -> [u8; MESSAGE_BYTES] {
    let mut message = [0; MESSAGE_BYTES];
    message[0] = VERSION;
    message[1] = REQUEST;
    message[4..6].copy_from_slice(&TRACKING.to_be_bytes());
    message[8..12].copy_from_slice(&sequence.to_be_bytes());
    message
}

/// Returns the state in a response, or `None` for the response to another request.
///
/// # Errors
/// chrony refuses the request.
fn decode(message: &[u8], sequence: u32) -> Result<Option<Tracking>, SourceError> {
    let u16_at = |at: usize| number_at::<2>(message, at).map(u16::from_be_bytes);
    let number = number_at::<4>(message, 16).map(u32::from_be_bytes);
    let is_own = matches!(message, [VERSION, RESPONSE, ..]) && number == Some(sequence);
    if !is_own || u16_at(4) != Some(TRACKING) {
        return Ok(None);
    }
    if let Some(status) = u16_at(8).filter(|status| *status != 0) {
        return Err(format!("chrony refused the command tracking with status {status}").into());
    }
    if u16_at(6) != Some(TRACKING_RESPONSE) || message.len() < MESSAGE_BYTES {
        return Err("chrony answered in an unknown format".into());
    }
    let float_at = |at: usize| number_at(message, at).map_or(0.0, float);
    Ok(Some(Tracking {
        is_synchronized: u16_at(54) != Some(UNSYNCHRONIZED),
        stratum: u16_at(52).unwrap_or_default(),
        offset: float_at(68),
        root_delay: float_at(92),
        root_dispersion: float_at(96),
    }))
}

fn number_at<const N: usize>(message: &[u8], at: usize) -> Option<[u8; N]> {
    message.get(at..at + N)?.try_into().ok()
}

/// Returns a number in chrony's format: 7 bits of a signed exponent, 25 bits of a signed
/// coefficient.
fn float(bytes: [u8; 4]) -> f64 {
    let bits = i32::from_be_bytes(bytes);
    let (exponent, coefficient) = (bits >> 25, (bits << 7) >> 7);
    f64::from(coefficient) * f64::from(exponent - 25).exp2()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The response of chrony 4.3 to request 7: a clock that is 0.25 s behind a server of stratum 8.
    const RESPONSE_HEX: &str = "\
        060200000021000500000000000000000000000700000000000000007f0000017f00000100000000\
        00000000000000000001000000090000000000006b09a71d36933a4efeffffb8d17a8ec4d4f52569\
        f57f6a89eb1edd81fa80dc49e0ddff02d8fed0f104823906";

    pub(in crate::clock) fn response() -> Vec<u8> {
        let digits: Vec<char> = RESPONSE_HEX.chars().collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
        digits.chunks(2).map(|pair| byte(pair).unwrap()).collect()
    }

    #[test]
    fn a_clock_without_a_source_is_not_synchronized_and_a_refusal_is_reported() {
        let mut unsynchronized = response();
        unsynchronized[55] = 3;
        let tracking = decode(&unsynchronized, 7).unwrap().unwrap();
        assert!(!tracking.is_synchronized);
        let mut refused = response();
        refused[9] = 2;
        assert!(decode(&refused, 7).unwrap_err().to_string().contains("status 2"));
        assert!(decode(&response()[..60], 7).unwrap_err().to_string().contains("unknown format"));
        assert_eq!(decode(&response(), 8).unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_message_is_decoded_or_rejected(
            message in proptest::collection::vec(any::<u8>(), 0..150), sequence: u32
        ) {
            drop(decode(&message, sequence));
            let mut own = response();
            own.truncate(message.len());
            own.iter_mut().zip(&message).skip(20).for_each(|(byte, other)| *byte = *other);
            if let Ok(Some(tracking)) = decode(&own, 7) {
                prop_assert!(tracking.offset.is_finite() && tracking.root_delay.is_finite());
            }
        }
    }
}
