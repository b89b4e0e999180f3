//! Text files that people write: read whole, within a limit, with an error that says what is wrong with the file.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Reads a file of at most so many bytes.
///
/// # Errors
/// What is wrong with the file. The kind is [`io::ErrorKind::InvalidData`] or [`io::ErrorKind::FileTooLarge`] if it was read.
pub(crate) fn read(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| explained(path, error))?;
    // A pipe has no size.
    let size = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| explained(path, error))?;
    let read = bytes.len() as u64;
    if read > max_bytes {
        let why = format!("it has {} bytes, more than the {} that are read", size.max(read), shown_size(max_bytes));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, not_utf8(&error)))
}

/// `it is not UTF-8: byte 0xe9 in line 3, at byte 12 of the file`.
fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
    let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let byte = bytes.get(at).copied().unwrap_or_default();
    format!("it is not UTF-8: byte {at} of the file, in line {line}, is 0x{byte:02x}; save the file as UTF-8")
}

/// An error of the system in words that say more than its number.
fn explained(path: &Path, error: io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::IsADirectory => "it is a directory, not a file".to_owned(),
        io::ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => format!("it is a link to {}, which does not exist", target.display()),
            Err(_) => return error,
        },
        _ => return error,
    };
    io::Error::new(error.kind(), why)
}

fn shown_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("good"), "a\u{e9}").unwrap();
        fs::write(at("latin"), b"kind: x\n# caf\xe9\n").unwrap();
        fs::write(at("utf16"), b"\xff\xfek\0").unwrap();
        fs::write(at("cut"), b"caf\xc3").unwrap();
        fs::write(at("full"), vec![b'x'; 1 << 20]).unwrap();
        fs::write(at("large"), vec![b'x'; (1 << 20) + 5]).unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink("dangling", at("twice")).unwrap();
        let read = |name: &str| read(&at(name), 1 << 20).map_err(|error| (error.kind(), error.to_string()));
        assert_eq!(read("good").unwrap(), "a\u{e9}");
        assert_eq!(read("full").unwrap().len(), 1 << 20);
        for (name, kind, wanted) in [
            ("latin", io::ErrorKind::InvalidData, "byte 13 of the file, in line 2, is 0xe9"),
            ("utf16", io::ErrorKind::InvalidData, "byte 0 of the file, in line 1, is 0xff"),
            ("cut", io::ErrorKind::InvalidData, "byte 3 of the file"),
            ("large", io::ErrorKind::FileTooLarge, "it has 1048581 bytes, more than the 1 MiB"),
            ("directory", io::ErrorKind::IsADirectory, "it is a directory"),
            ("dangling", io::ErrorKind::NotFound, "a link to nowhere, which does not exist"),
            ("twice", io::ErrorKind::NotFound, "a link to dangling, which does not exist"),
            ("missing", io::ErrorKind::NotFound, "No such file"),
        ] {
            let (found, why) = read(name).unwrap_err();
            assert!(found == kind && why.contains(wanted), "{name}: {found:?} {why}");
        }
    }
}
