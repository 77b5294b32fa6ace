//! The JSON of smartctl: its list of disks, and its report of one disk.
//!
//! Must never know: when and how smartctl runs.

use serde::Deserialize;

/// The attributes of ATA disks: reallocated sectors, reported uncorrectable errors, and sectors
/// that wait for a reallocation.
const REALLOCATED: u16 = 5;
const UNCORRECTABLE: u16 = 187;
const PENDING: u16 = 197;
/// The bit of the exit status for a device of an unknown type.
const UNKNOWN_TYPE: u32 = 1;
/// The texts of the system for a missing permission.
const NO_PERMISSION: [&str; 2] = ["Permission denied", "Operation not permitted"];

/// A disk in smartctl's list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Device {
    /// The path, such as `/dev/sda`.
    pub(super) name: String,
    /// The type, such as `nvme`, or `megaraid,3` for a disk behind a controller.
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// The health of a disk; a value is `None` when the disk does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Health {
    pub(super) is_healthy: Option<bool>,
    pub(super) temperature: Option<f64>,
    pub(super) reallocated_sectors: Option<f64>,
    pub(super) pending_sectors: Option<f64>,
    pub(super) media_errors: Option<f64>,
    pub(super) percentage_used: Option<f64>,
}

/// The reason why a disk has no report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// The agent lacks the permission.
    Permission,
    /// smartctl does not know the device, such as a memory stick.
    Unsupported,
    /// The program or the disk failed.
    Failed,
}

#[derive(Deserialize)]
struct ScanOutput {
    #[serde(default)]
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct ReportOutput {
    smartctl: Program,
    smart_support: Option<Support>,
    smart_status: Option<Status>,
    temperature: Option<Temperature>,
    ata_smart_attributes: Option<Attributes>,
    nvme_smart_health_information_log: Option<NvmeLog>,
    endurance_used: Option<Endurance>,
    scsi_grown_defect_list: Option<f64>,
}

#[derive(Deserialize)]
struct Program {
    exit_status: u32,
    #[serde(default)]
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    string: String,
}

#[derive(Deserialize)]
struct Support {
    available: Option<bool>,
}

#[derive(Deserialize)]
struct Status {
    passed: Option<bool>,
}

#[derive(Deserialize)]
struct Temperature {
    current: Option<f64>,
}

#[derive(Deserialize)]
struct Attributes {
    table: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    id: u16,
    raw: RawValue,
}

#[derive(Deserialize)]
struct RawValue {
    value: f64,
}

#[derive(Deserialize)]
struct NvmeLog {
    media_errors: Option<f64>,
    percentage_used: Option<f64>,
}

#[derive(Deserialize)]
struct Endurance {
    current_percent: Option<f64>,
}

/// Parses the list of disks.
///
/// # Errors
/// The output has another format.
pub(super) fn parse_devices(output: &[u8]) -> Result<Vec<Device>, String> {
    let output: ScanOutput = serde_json::from_slice(output).map_err(|cause| cause.to_string())?;
    Ok(output.devices)
}

/// Parses the report of a disk. A sleeping disk has no values.
///
/// # Errors
/// The disk has no report: the reason, and a text for the log.
pub(super) fn parse_report(output: &[u8]) -> Result<Health, (Reason, String)> {
    let output: ReportOutput =
        serde_json::from_slice(output).map_err(|cause| (Reason::Failed, cause.to_string()))?;
    let health = output.health();
    if health != Health::default() {
        return Ok(health);
    }
    let has_smart = output.smart_support.and_then(|support| support.available);
    let Program { exit_status, messages } = output.smartctl;
    let texts = || messages.iter().map(|message| message.string.as_str());
    let text = texts().next().unwrap_or("no report").to_owned();
    if texts().any(|text| NO_PERMISSION.iter().any(|permission| text.contains(permission))) {
        return Err((Reason::Permission, text));
    }
    match exit_status {
        _ if has_smart == Some(false) => Err((Reason::Unsupported, text)),
        status if status & UNKNOWN_TYPE != 0 => Err((Reason::Unsupported, text)),
        // With `--nocheck=standby,0`, only a sleeping disk ends with this status and no values.
        0 => Ok(health),
        _ => Err((Reason::Failed, text)),
    }
}

impl ReportOutput {
    fn health(&self) -> Health {
        let attribute = |id: u16| {
            let table = self.ata_smart_attributes.as_ref().map(|attributes| &attributes.table);
            table?.iter().find(|attribute| attribute.id == id).map(|found| found.raw.value)
        };
        let nvme = self.nvme_smart_health_information_log.as_ref();
        let endurance = self.endurance_used.as_ref().and_then(|used| used.current_percent);
        Health {
            is_healthy: self.smart_status.as_ref().and_then(|status| status.passed),
            temperature: self.temperature.as_ref().and_then(|temperature| temperature.current),
            reallocated_sectors: attribute(REALLOCATED).or(self.scsi_grown_defect_list),
            pending_sectors: attribute(PENDING),
            media_errors: nvme.and_then(|log| log.media_errors).or(attribute(UNCORRECTABLE)),
            percentage_used: nvme.and_then(|log| log.percentage_used).or(endurance),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The report of an ATA disk that fails (exit status 24), shortened.
    pub(in crate::smart) const ATA: &str = r#"{"json_format_version":[1,0],
        "smartctl":{"version":[7,3],"argv":["smartctl"],"exit_status":24},
        "device":{"name":"/dev/sda","info_name":"/dev/sda [SAT]","type":"sat","protocol":"ATA"},
        "smart_status":{"passed":false},
        "ata_smart_attributes":{"revision":16,"table":[
            {"id":5,"name":"Reallocated_Sector_Ct","value":12,"worst":12,"thresh":36,
             "when_failed":"now","flags":{"value":51},"raw":{"value":1912,"string":"1912"}},
            {"id":187,"name":"Reported_Uncorrect","value":96,"worst":96,"thresh":0,
             "raw":{"value":4,"string":"4"}},
            {"id":194,"name":"Temperature_Celsius","value":38,"worst":49,"thresh":0,
             "raw":{"value":81604837414,"string":"38 (0 19 0 0 0)"}},
            {"id":197,"name":"Current_Pending_Sector","value":100,"worst":100,"thresh":0,
             "raw":{"value":8,"string":"8"}}]},
        "power_on_time":{"hours":40213},"temperature":{"current":38}}"#;

    /// The report of a disk of flash memory, shortened.
    const NVME: &str = r#"{"smartctl":{"version":[7,3],"exit_status":0},
        "smart_status":{"passed":true,"nvme":{"value":0}},
        "nvme_smart_health_information_log":{"critical_warning":0,"temperature":41,
            "available_spare":100,"percentage_used":3,"data_units_read":98213456,
            "media_errors":0,"num_err_log_entries":112},
        "temperature":{"current":41}}"#;

    /// A message and an exit status without values.
    pub(in crate::smart) fn refusal(message: &str, exit_status: u32) -> String {
        format!(
            r#"{{"smartctl":{{"messages":[{{"string":"{message}","severity":"error"}}],
            "exit_status":{exit_status}}}}}"#
        )
    }

    #[test]
    fn disks_of_both_kinds_report_their_health() {
        let ata = Health {
            is_healthy: Some(false),
            temperature: Some(38.0),
            reallocated_sectors: Some(1912.0),
            pending_sectors: Some(8.0),
            media_errors: Some(4.0),
            percentage_used: None,
        };
        assert_eq!(parse_report(ATA.as_bytes()), Ok(ata));
        let nvme = Health {
            is_healthy: Some(true),
            temperature: Some(41.0),
            media_errors: Some(0.0),
            percentage_used: Some(3.0),
            ..Health::default()
        };
        assert_eq!(parse_report(NVME.as_bytes()), Ok(nvme));
    }

    #[test]
    fn a_disk_without_a_report_has_a_reason_and_a_sleeping_disk_has_none() {
        let check = |message: &str, exit_status: u32| {
            parse_report(refusal(message, exit_status).as_bytes()).map_err(|(reason, _)| reason)
        };
        let denied = "Smartctl open device: /dev/nvme0 failed: Permission denied";
        assert_eq!(check(denied, 2), Err(Reason::Permission));
        let forbidden = "Read Device Identity failed: Operation not permitted";
        assert_eq!(check(forbidden, 4), Err(Reason::Permission));
        let unknown = "/dev/sdb: Unknown USB bridge [0x0781:0x5581 (0x100)]";
        assert_eq!(check(unknown, 1), Err(Reason::Unsupported));
        assert_eq!(check("Read Device Identity failed: I/O error", 2), Err(Reason::Failed));
        assert_eq!(check("Device is in STANDBY mode, exit(0)", 0), Ok(Health::default()));
        // A disk that no longer answers.
        assert_eq!(check("Read SMART Data failed: Input/output error", 4), Err(Reason::Failed));
        assert_eq!(check("", 64), Err(Reason::Failed));
        let virtual_disk = br#"{"smartctl":{"exit_status":4},"smart_support":{"available":false}}"#;
        assert_eq!(parse_report(virtual_disk).map_err(|(r, _)| r), Err(Reason::Unsupported));
        assert_eq!(parse_report(b"{").map_err(|(reason, _)| reason), Err(Reason::Failed));
    }

    #[test]
    fn the_list_of_disks_names_their_types() {
        let list = r#"{"smartctl":{"exit_status":0},"devices":[
            {"name":"/dev/sda","info_name":"/dev/sda","type":"scsi","protocol":"SCSI"},
            {"name":"/dev/bus/0","info_name":"/dev/bus/0 [megaraid_disk_03]",
             "type":"megaraid,3","protocol":"SCSI"}]}"#;
        let devices = parse_devices(list.as_bytes()).unwrap();
        let found: Vec<_> = devices.iter().map(|d| (d.name.as_str(), d.kind.as_str())).collect();
        assert_eq!(found, [("/dev/sda", "scsi"), ("/dev/bus/0", "megaraid,3")]);
        assert_eq!(parse_devices(br#"{"smartctl":{"exit_status":0}}"#).unwrap(), []);
        assert!(parse_devices(b"smartctl 6.6").is_err());
    }
}
