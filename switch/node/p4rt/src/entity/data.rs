//! Counter data and meter configurations: messages to values, and back.

use fairlane_pipeline::{CounterData, MeterConfig};

use crate::proto::p4::config::v1::meter_spec;
use crate::proto::p4::v1 as p4;
use crate::status::{Result, Status};

/// Reads what a client gives for a counter.
pub(super) fn counter_data(data: &p4::CounterData) -> Result<CounterData> {
    let number = |what: &str, value: i64| u64::try_from(value).map_err(|_| Status::invalid(format!("{what} {value} is negative")));
    Ok(CounterData { packets: number("packet_count", data.packet_count)?, bytes: number("byte_count", data.byte_count)? })
}

/// Writes a counter; a count beyond `int64` stays at its largest.
pub(super) fn counter_message(data: CounterData) -> p4::CounterData {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    p4::CounterData { byte_count: number(data.bytes), packet_count: number(data.packets) }
}

/// Reads a meter's configuration, under the rules of its type.
pub(super) fn meter_config(config: &p4::MeterConfig, kind: meter_spec::Type) -> Result<MeterConfig> {
    let number = |what: &str, value: i64| u64::try_from(value).map_err(|_| Status::invalid(format!("{what} {value} is negative")));
    let rates = MeterConfig {
        cir: number("cir", config.cir)?,
        cburst: number("cburst", config.cburst)?,
        pir: number("pir", config.pir)?,
        pburst: number("pburst", config.pburst)?,
        ..MeterConfig::default()
    };
    if kind != meter_spec::Type::TwoRateThreeColor && (rates.pir != rates.cir || rates.pburst != rates.cburst) {
        return Err(Status::invalid(format!(
            "a {} meter needs pir = cir and pburst = cburst; given cir {}, cburst {}, pir {}, pburst {}",
            kind.as_str_name(),
            rates.cir,
            rates.cburst,
            rates.pir,
            rates.pburst
        )));
    }
    if config.eburst != 0 {
        return Err(match kind {
            meter_spec::Type::SingleRateThreeColor => {
                Status::unimplemented("eburst: meters are two-rate three-colour markers (RFC 2698), without an excess burst")
            }
            _ => Status::invalid(format!("eburst {}: a {} meter has none", config.eburst, kind.as_str_name())),
        });
    }
    if rates.pir < rates.cir {
        return Err(Status::invalid(format!("pir {} is below cir {}", rates.pir, rates.cir)));
    }
    Ok(rates)
}

/// Writes a meter's configuration.
pub(super) fn meter_message(config: MeterConfig) -> p4::MeterConfig {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    p4::MeterConfig {
        cir: number(config.cir),
        cburst: number(config.cburst),
        pir: number(config.pir),
        pburst: number(config.pburst),
        eburst: 0,
    }
}
