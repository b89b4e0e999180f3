//! The archive that people install, of the program under test, and a web server that publishes it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use crate::harness::assets::interlock;
use crate::harness::plane::Plane;
use crate::harness::process::run;

/// Compresses a debug build of a hundred megabytes, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// The archive, made once.
#[track_caller]
pub(crate) fn archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        // With the files of a plane, which a later run removes.
        let directory = Plane::shared().dir().join("archive");
        let mut make = Command::new(packaging("archive"));
        make.arg(interlock().unwrap_or_else(|error| panic!("{error}"))).arg(platform()).arg(directory);
        run(make, DEADLINE).expect_success().stdout.trim_end().into()
    })
}

/// A file in `packaging/`.
pub(crate) fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name)
}

/// As Go calls the platform of this machine.
pub(crate) fn platform() -> &'static str {
    if cfg!(target_arch = "aarch64") { "linux-arm64" } else { "linux-amd64" }
}

/// The URL of the archive on a web server, which runs as long as the test process.
#[track_caller]
pub(crate) fn published() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let archive = archive();
        let path = format!("/{}", archive.file_name().expect("it is a file").display());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}{path}", listener.local_addr().expect("a bound socket"));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up is its own failure.
                let _ = answer(&stream, &path, archive);
            }
        });
        url
    })
}

/// Answers one request: the archive, or 404 for any other path.
fn answer(mut stream: &TcpStream, path: &str, archive: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let (method, asked) = request.split_once(' ').unwrap_or_default();
    let is_it = asked.split(' ').next() == Some(path);
    let (status, body) = if is_it { ("200 OK", fs::read(archive)?) } else { ("404 Not Found", Vec::new()) };
    // helm 3 asks for the type first, and takes an address of any other type for a repository of git.
    let (kind, length) = ("application/gzip", body.len());
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    if method == "HEAD" { Ok(()) } else { stream.write_all(&body) }
}
