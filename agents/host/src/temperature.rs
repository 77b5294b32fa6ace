//! Temperatures of the kernel's sensors.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use granary_agent_kit::{Readings, Source, SourceError};

use crate::host::Host;

/// The maximum number of sensors; servers have dozens.
const SENSORS_MAX: usize = 128;
/// The range of valid temperatures. A sensor with another value is not connected.
const PLAUSIBLE: std::ops::Range<f64> = -100.0..250.0;

/// The source of temperatures.
#[derive(Debug)]
pub(crate) struct Temperature {
    host: Arc<Host>,
    /// The sensors that the first round found.
    sensors: Option<Vec<Sensor>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Sensor {
    chip: String,
    name: String,
    file: PathBuf,
}

impl Temperature {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host, sensors: None }
    }
}

impl Source for Temperature {
    fn name(&self) -> &'static str {
        "temperature"
    }

    fn sample(&mut self, _now_ms: i64, readings: &mut Readings) -> Result<(), SourceError> {
        let sensors = self.sensors.get_or_insert_with(|| find_sensors(&self.host.sys));
        for Sensor { chip, name, file } in sensors {
            // A sleeping sensor, such as a disk's, has no value.
            let Some(value) = read_trimmed(file).and_then(|text| text.parse::<f64>().ok()) else {
                continue;
            };
            let celsius = value / 1000.0;
            if PLAUSIBLE.contains(&celsius) {
                let tags = [("chip", &**chip), ("host", &*self.host.name), ("sensor", &**name)];
                readings.gauge("system_temperature", "celsius", &tags, celsius);
            }
        }
        Ok(())
    }
}

fn read_trimmed(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Returns the entries of a folder, sorted by name.
fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Finds the sensors of chips, or the thermal zones when no chip has a sensor.
fn find_sensors(sys: &Path) -> Vec<Sensor> {
    let mut sensors: Vec<Sensor> = Vec::new();
    for chip in sorted_entries(&sys.join("class/hwmon")) {
        let name = read_trimmed(&chip.join("name")).unwrap_or_default();
        for file in sorted_entries(&chip) {
            let file_name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(sensor) = file_name.strip_suffix("_input").filter(|s| s.starts_with("temp"))
            else {
                continue;
            };
            let label = read_trimmed(&chip.join(format!("{sensor}_label")));
            add_sensor(
                &mut sensors,
                &name,
                &label.unwrap_or_else(|| sensor.to_owned()),
                file.clone(),
            );
        }
    }
    if sensors.is_empty() {
        for zone in sorted_entries(&sys.join("class/thermal")) {
            let file = zone.join("temp");
            if let Some(kind) = read_trimmed(&zone.join("type")).filter(|_| file.exists()) {
                add_sensor(&mut sensors, "thermal", &kind, file);
            }
        }
    }
    sensors
}

/// Adds a sensor. A duplicate name, such as that of a second disk, is numbered.
fn add_sensor(sensors: &mut Vec<Sensor>, chip: &str, name: &str, file: PathBuf) {
    let is_taken =
        |name: &str| sensors.iter().any(|sensor| sensor.chip == chip && sensor.name == name);
    let numbered = (2..=SENSORS_MAX).map(|number| format!("{name} {number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name));
    if let Some(name) = free.filter(|_| sensors.len() < SENSORS_MAX) {
        sensors.push(Sensor { chip: chip.to_owned(), name, file });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_files(files: &[(&str, &str)]) -> Vec<(String, f64)> {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join("class").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let host = Arc::new(Host { sys: folder.path().to_owned(), ..Host::for_tests() });
        let mut readings = Readings::default();
        Temperature::new(host).sample(1, &mut readings).unwrap();
        let tag = |r: &granary_agent_kit::Reading, key: &str| {
            r.tags.iter().find(|(name, _)| name == key).unwrap().1.clone()
        };
        let all = readings.as_slice().iter();
        all.map(|r| (format!("{}/{}", tag(r, "chip"), tag(r, "sensor")), r.value)).collect()
    }

    #[test]
    fn sensors_have_the_names_of_chips_and_labels() {
        let found = sample_files(&[
            ("hwmon/hwmon0/name", "coretemp\n"),
            ("hwmon/hwmon0/temp1_input", "45500\n"),
            ("hwmon/hwmon0/temp1_label", "Package id 0\n"),
            ("hwmon/hwmon0/temp2_input", "-273000\n"),
            ("hwmon/hwmon0/fan1_input", "900\n"),
            ("hwmon/hwmon1/name", "nvme"),
            ("hwmon/hwmon1/temp1_input", "38000"),
            ("hwmon/hwmon2/name", "nvme"),
            ("hwmon/hwmon2/temp1_input", "39000"),
            ("thermal/thermal_zone0/type", "acpitz"),
            ("thermal/thermal_zone0/temp", "20000"),
        ]);
        let expected =
            [("coretemp/Package id 0", 45.5), ("nvme/temp1", 38.0), ("nvme/temp1 2", 39.0)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn without_sensors_of_chips_the_thermal_zones_are_read() {
        let found = sample_files(&[
            ("thermal/thermal_zone0/type", "x86_pkg_temp\n"),
            ("thermal/thermal_zone0/temp", "51000\n"),
            ("thermal/cooling_device0/type", "fan\n"),
        ]);
        assert_eq!(found, [("thermal/x86_pkg_temp".to_owned(), 51.0)]);
        assert_eq!(sample_files(&[]), []);
    }
}
