//! The log: lines on standard output or in a file, or none. Where none is asked for, a log statement costs one load and a branch.

use std::fs::File;
use std::io;
use std::sync::Arc;

use tracing::level_filters::LevelFilter;

use crate::cli::{LogLevel, LogTarget};

/// Installs the log of the process. Warnings and errors go to standard error where no log is asked for.
///
/// # Errors
/// Those of creating the log file.
pub fn install(target: &LogTarget, level: LogLevel) -> io::Result<()> {
    let filter = match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Off => LevelFilter::OFF,
    };
    // A log that cannot be written must not end the switch, which a complaint about it on standard error would.
    let builder = || tracing_subscriber::fmt().with_ansi(false).log_internal_errors(false);
    // A second installation (as in tests) leaves the first in place.
    let _ = match target {
        LogTarget::None => {
            let quiet = builder().with_max_level(LevelFilter::WARN.min(filter)).with_writer(io::stderr);
            quiet.without_time().with_target(false).try_init()
        }
        LogTarget::Console => builder().with_max_level(filter).try_init(),
        LogTarget::File(path) => {
            let file = Arc::new(File::create(path)?);
            builder().with_max_level(filter).with_writer(file).try_init()
        }
    };
    Ok(())
}
