//! The log, in BMv2's form: `[13:05:17.003] [bmv2] [D] [thread 4711] ...`, with the time of day in UTC, on standard output or in files
//! of bounded size; or none. Where none is asked for, a log statement costs one load and a branch.
//!
//! What libraries log (HTTP/2 above all) is left out but for warnings, unless [`LIBRARIES`] asks for it.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fairlane_device::pipeline::Level;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::{LogFile, LogLevel, LogTarget};

/// The variable that asks for what libraries log, as `h2=debug,hyper=trace`.
pub const LIBRARIES: &str = "FAIRLANE_LOG_LIBRARIES";
/// Bytes of lines that wait for each other, unless each is written at once.
const TOGETHER: usize = 1 << 16;

/// Installs the log of the process. Warnings and errors go to standard error where no log is asked for. Returns where lines of the
/// packet log go, where there is a log.
///
/// # Errors
/// Those of creating the log file, and of [`LIBRARIES`].
pub fn install(target: &LogTarget, level: LogLevel) -> io::Result<Option<PacketLog>> {
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
    let (sink, together) = match target {
        LogTarget::None => {
            let quiet = builder().with_max_level(LevelFilter::WARN.min(filter)).with_writer(io::stderr);
            // A second installation (as in tests) leaves the first in place.
            let _ = quiet.without_time().with_target(false).try_init();
            return Ok(None);
        }
        LogTarget::Console => (Sink::Console, TOGETHER),
        LogTarget::File(file) => {
            let together = if file.flush { 0 } else { TOGETHER.min(usize::try_from(file.max_size).unwrap_or(TOGETHER)) };
            (Sink::Files(Mutex::new(Files::create(file.clone())?)), together)
        }
    };
    let sink = Arc::new(sink);
    let mut targets = Targets::new().with_default(LevelFilter::WARN.min(filter)).with_target("fairlane", filter);
    if let Ok(text) = std::env::var(LIBRARIES) {
        let asked: Targets =
            text.parse().map_err(|error| io::Error::other(format!("{LIBRARIES}={text}: {error}: write it as h2=debug")))?;
        targets = targets.with_targets(asked);
    }
    let subscriber = builder().with_max_level(LevelFilter::TRACE).event_format(Words).with_writer(Lines(Arc::clone(&sink))).finish();
    let _ = subscriber.with(targets).try_init();
    Ok(Some(PacketLog { sink, level, together, waiting: String::new() }))
}

/// Writes the packet log: the lines of a batch of packets together, or each at once.
pub struct PacketLog {
    sink: Arc<Sink>,
    level: LogLevel,
    together: usize,
    waiting: String,
}

impl PacketLog {
    /// A line, unless the log leaves its level out.
    pub fn write(&mut self, level: Level, line: &str) {
        let needed = match level {
            Level::Trace => LogLevel::Trace,
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        if needed < self.level {
            return;
        }
        if self.waiting.len() + line.len() >= self.together {
            self.flush();
        }
        let _ = head(&mut self.waiting, level.letter());
        self.waiting.push_str(line);
        self.waiting.push('\n');
        if self.together == 0 {
            self.flush();
        }
    }

    /// Writes what waits.
    pub fn flush(&mut self) {
        if !self.waiting.is_empty() {
            self.sink.write(self.waiting.as_bytes());
            self.waiting.clear();
        }
    }
}

/// What stands before each line.
fn head(out: &mut impl fmt::Write, letter: char) -> fmt::Result {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (second, milli) = (since.as_secs() % 86_400, since.subsec_millis());
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    write!(out, "[{hour:02}:{minute:02}:{second:02}.{milli:03}] [bmv2] [{letter}] [thread {thread}] ")
}

/// How events of the switch itself are written.
struct Words;

impl<S, N> FormatEvent<S, N> for Words
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let letter = event.metadata().level().as_str().chars().next().unwrap_or('?');
        head(&mut writer, letter)?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}

/// Where lines go.
enum Sink {
    Console,
    Files(Mutex<Files>),
}

impl Sink {
    /// Whole lines. A log that cannot be written must not end the switch.
    fn write(&self, lines: &[u8]) {
        let _ = match self {
            Sink::Console => {
                let mut output = io::stdout().lock();
                output.write_all(lines).and_then(|()| output.flush())
            }
            Sink::Files(files) => files.lock().unwrap_or_else(PoisonError::into_inner).write(lines),
        };
    }
}

struct Lines(Arc<Sink>);

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(&self.0)
    }
}

/// An event is written by one call.
struct Line<'a>(&'a Sink);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Log files as BMv2 turns them over (spdlog's `rotating_file_sink`): `x.txt`, and of those before it `x.1.txt` is the newest.
struct Files {
    of: LogFile,
    file: File,
    size: u64,
}

impl Files {
    fn create(of: LogFile) -> io::Result<Files> {
        Ok(Files { file: File::create(path(&of, 0))?, of, size: 0 })
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + lines.len() as u64 > self.of.max_size {
            self.turn_over()?;
        }
        self.size += lines.len() as u64;
        self.file.write_all(lines)
    }

    fn turn_over(&mut self) -> io::Result<()> {
        for number in (0..self.of.max_files).rev() {
            // Some are not there yet.
            let _ = std::fs::rename(path(&self.of, number), path(&self.of, number + 1));
        }
        self.file = File::create(path(&self.of, 0))?;
        self.size = 0;
        Ok(())
    }
}

/// The file in use (0), or an older one.
fn path(of: &LogFile, number: u32) -> PathBuf {
    let mut name = of.base.clone().into_os_string();
    name.push(if number == 0 { ".txt".to_string() } else { format!(".{number}.txt") });
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fairlane-log-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn log(base: PathBuf, level: LogLevel, max_size: u64, max_files: u32) -> PacketLog {
        let file = LogFile { base, max_size, max_files, flush: true };
        let sink = Arc::new(Sink::Files(Mutex::new(Files::create(file).expect("a file"))));
        PacketLog { sink, level, together: 0, waiting: String::new() }
    }

    #[test]
    fn files_are_turned_over_and_their_size_is_bounded() {
        let folder = folder("sizes");
        let mut log = log(folder.join("s1"), LogLevel::Trace, 300, 2);
        for number in 0..100 {
            log.write(Level::Debug, &format!("line {number}"));
        }
        let mut names: Vec<_> = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        assert_eq!(names, ["s1.1.txt", "s1.2.txt", "s1.txt"]);
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a log");
        let all = ["s1.2.txt", "s1.1.txt", "s1.txt"].map(text);
        assert!(all.iter().all(|text| text.len() <= 300 && !text.is_empty()), "{all:?}");
        let lines: Vec<String> = all.concat().lines().filter_map(|line| line.rsplit_once("] ").map(|(_, said)| said.to_string())).collect();
        let first = 100 - lines.len();
        assert_eq!(lines, (first..100).map(|number| format!("line {number}")).collect::<Vec<_>>());
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn a_level_leaves_out_those_below_it() {
        let levels = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error];
        let named = [LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error, LogLevel::Off];
        for (at, level) in named.into_iter().enumerate() {
            let folder = folder(&format!("levels-{at}"));
            let mut log = log(folder.join("s1"), level, 1 << 20, 0);
            levels.iter().for_each(|level| log.write(*level, "said"));
            let text = std::fs::read_to_string(folder.join("s1.txt")).expect("a log");
            let letters: String = text.lines().filter_map(|line| line.split("[bmv2] [").nth(1)?.chars().next()).collect();
            assert_eq!(letters, "TDIWE"[at.min(5)..]);
            std::fs::remove_dir_all(folder).expect("removed");
        }
    }
}
