//! Files that are written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Writes a file, and where told makes its folder.
pub fn save(path: &Path, bytes: &[u8], make_folder: bool) -> Result<(), String> {
    let made = match path.parent() {
        Some(folder) if make_folder && !folder.as_os_str().is_empty() => fs::create_dir_all(folder),
        _ => Ok(()),
    };
    made.and_then(|()| write(path, bytes)).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Writes beside the file and renames, so that nobody reads half of it. Devices and pipes are written to directly.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let result = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        // The failure that matters is the one above.
        let _ = fs::remove_file(&temporary);
    }
    result
}
