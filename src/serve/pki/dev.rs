//! Development certificates: a CA and a leaf in a directory, for `serve` without a cluster and for tests.
//!
//! Valid files are kept, so that browsers and curl continue to trust the CA. A leaf that is missing, invalid or about to expire is
//! replaced. A CA is replaced only on request, because it may be in a trust store, or be a real CA.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::authority::{self, Authority, AuthorityError};
use super::bundle;
use super::tls;
use crate::regular_file;

/// One year, so that the CA does not expire during a project.
const CA_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);

/// 90 days. Each start renews the leaf if less than a third is left.
const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A leaf that expires sooner is replaced.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The names in the leaf: this machine, and the Service of the default manifests.
const LEAF_NAMES: [&str; 7] = [
    "localhost",
    "127.0.0.1",
    "::1",
    "interlock",
    "interlock.interlock-system",
    "interlock.interlock-system.svc",
    "interlock.interlock-system.svc.cluster.local",
];

/// Only the owner may read a key.
const KEY_MODE: u32 = 0o600;

/// The permissions of all users except the owner.
const OTHERS: u32 = 0o077;

/// Certificates are public.
const CERTIFICATE_MODE: u32 = 0o644;

/// The development certificates in a directory.
#[derive(Clone)]
pub struct DevCertificates {
    /// `ca.crt`
    pub ca_path: PathBuf,
    /// `tls.crt`
    pub certificate_path: PathBuf,
    /// `tls.key`
    pub key_path: PathBuf,
    pub ca_pem: String,
    pub certificate_pem: String,
    pub key_pem: String,
    /// The last moment at which the leaf is valid.
    pub not_after: Timestamp,
    pub created: Created,
    /// The keys that users other than the owner may read or write.
    pub exposed_keys: Vec<PathBuf>,
}

/// The files that were created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// Nothing: all files existed and were valid.
    Nothing,
    /// A new leaf, signed by the existing CA.
    Leaf,
    /// A new CA and a new leaf.
    Everything,
}

/// There are no development certificates.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// A file or the directory cannot be read or written.
    #[error("failed to {action} {}: check that the directory is writable, or name another one", path.display())]
    Io {
        /// `read`, `write`, `create`, `lock`.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A link, a directory or a pipe is in the place of a file.
    #[error("failed to use {}: remove it, or name another directory", path.display())]
    Irregular { path: PathBuf, source: io::Error },
    /// The CA in the directory cannot be used.
    #[error("failed to use the CA in {}: {WAY_OUT}", path.display())]
    Authority { path: PathBuf, source: AuthorityError },
    /// The certificate or the key of the CA is missing and a new leaf is needed, or there is a leaf without a CA.
    #[error("failed to find {}, while {} is there: {WAY_OUT}", missing.display(), present.display())]
    Incomplete {
        missing: PathBuf,
        /// The file that would be orphaned or overwritten.
        present: PathBuf,
    },
    /// A certificate cannot be created.
    #[error("failed to create the development certificates")]
    Creation(#[source] AuthorityError),
}

/// What to do about errors that a person has to resolve.
const WAY_OUT: &str = "put the right file back, or replace CA and certificate with `interlock certs dev --force`";

impl std::fmt::Debug for DevCertificates {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DevCertificates")
            .field("ca_path", &self.ca_path)
            .field("not_after", &self.not_after)
            .field("created", &self.created)
            .finish_non_exhaustive()
    }
}

/// Ensures that `dir` contains development certificates that are valid at `now` and for some time afterwards. If several processes call
/// this at once, one creates the files and the others use them.
///
/// # Errors
/// [`DevError`] names the file and what to do.
pub fn ensure(dir: &Path, now: Timestamp) -> Result<DevCertificates, DevError> {
    let files = DevFiles::in_dir(dir);
    let _lock = files.lock()?;
    let ca_pem = read(&files.ca)?;
    let ca_key = read(&files.ca_key)?;
    let leaf = (read(&files.leaf)?, read(&files.leaf_key)?);
    match (ca_pem, ca_key) {
        (None, None) => {
            if let Some(present) = leaf.0.as_ref().map(|_| &files.leaf).or(leaf.1.as_ref().map(|_| &files.leaf_key)) {
                return Err(files.incomplete(&files.ca, present));
            }
            files.create_everything(now)
        }
        (None, Some(_)) => Err(files.incomplete(&files.ca, &files.ca_key)),
        (Some(ca_pem), ca_key) => {
            let (_, ca) = authority::valid_ca(&ca_pem, now).map_err(|source| files.broken(&files.ca, source))?;
            if let (Some(certificate_pem), Some(key_pem)) = leaf
                && let Some(not_after) = good_until(&ca_pem, &certificate_pem, &key_pem, now)
                // A new leaf could not be valid for longer than the CA.
                && (not_after - RENEW_BEFORE > now || not_after >= ca.not_after)
            {
                return Ok(files.certificates(ca_pem, certificate_pem, key_pem, not_after, Created::Nothing));
            }
            let ca_key = ca_key.ok_or_else(|| files.incomplete(&files.ca_key, &files.ca))?;
            let authority = Authority::from_pem(&ca_pem, &ca_key, now).map_err(|source| {
                let at_fault = if matches!(source, AuthorityError::WrongKey) { &files.ca_key } else { &files.ca };
                files.broken(at_fault, source)
            })?;
            files.create_leaf(&authority, now, Created::Leaf)
        }
    }
}

/// Creates a new CA and a new leaf, and replaces existing ones in `dir`.
///
/// # Errors
/// [`DevError::Io`] and [`DevError::Creation`].
pub fn replace(dir: &Path, now: Timestamp) -> Result<DevCertificates, DevError> {
    let files = DevFiles::in_dir(dir);
    let _lock = files.lock()?;
    files.create_everything(now)
}

struct DevFiles {
    dir: PathBuf,
    ca: PathBuf,
    ca_key: PathBuf,
    leaf: PathBuf,
    leaf_key: PathBuf,
}

impl DevFiles {
    fn in_dir(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            ca: dir.join("ca.crt"),
            ca_key: dir.join("ca.key"),
            leaf: dir.join("tls.crt"),
            leaf_key: dir.join("tls.key"),
        }
    }

    /// Excludes other processes until the file is dropped.
    fn lock(&self) -> Result<File, DevError> {
        fs::create_dir_all(&self.dir).map_err(|source| io_error("create", &self.dir, source))?;
        let path = self.dir.join(".lock");
        let file = regular_file::open_own(&path).map_err(|source| io_error("create", &path, source))?;
        file.lock().map_err(|source| io_error("lock", &path, source))?;
        Ok(file)
    }

    fn create_everything(&self, now: Timestamp) -> Result<DevCertificates, DevError> {
        let authority =
            Authority::generate("interlock development CA", now, CA_LIFETIME).map_err(DevError::Creation)?;
        // Keys first: a certificate without its key is useless.
        self.write(&self.ca_key, authority.key_pem(), KEY_MODE)?;
        self.write(&self.ca, authority.certificate_pem(), CERTIFICATE_MODE)?;
        self.create_leaf(&authority, now, Created::Everything)
    }

    fn create_leaf(
        &self,
        authority: &Authority,
        now: Timestamp,
        created: Created,
    ) -> Result<DevCertificates, DevError> {
        let pair = authority.issue(&LEAF_NAMES, now, LEAF_LIFETIME).map_err(DevError::Creation)?;
        self.write(&self.leaf_key, &pair.key_pem, KEY_MODE)?;
        self.write(&self.leaf, &pair.certificate_pem, CERTIFICATE_MODE)?;
        let ca_pem = authority.certificate_pem().to_owned();
        Ok(self.certificates(ca_pem, pair.certificate_pem, pair.key_pem, pair.not_after, created))
    }

    /// Writes a file atomically.
    fn write(&self, path: &Path, text: &str, mode: u32) -> Result<(), DevError> {
        let written = tempfile::Builder::new()
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(&self.dir)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.as_file().sync_all()?;
                file.persist(path).map_err(|error| error.error)
            });
        written.map(drop).map_err(|source| io_error("write", path, source))
    }

    fn certificates(
        &self,
        ca_pem: String,
        certificate_pem: String,
        key_pem: String,
        not_after: Timestamp,
        created: Created,
    ) -> DevCertificates {
        DevCertificates {
            ca_path: self.ca.clone(),
            certificate_path: self.leaf.clone(),
            key_path: self.leaf_key.clone(),
            ca_pem,
            certificate_pem,
            key_pem,
            not_after,
            created,
            exposed_keys: [&self.ca_key, &self.leaf_key].into_iter().filter(|key| is_exposed(key)).cloned().collect(),
        }
    }

    fn incomplete(&self, missing: &Path, present: &Path) -> DevError {
        DevError::Incomplete { missing: missing.to_owned(), present: present.to_owned() }
    }

    fn broken(&self, path: &Path, source: AuthorityError) -> DevError {
        DevError::Authority { path: path.to_owned(), source }
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> DevError {
    let path = path.to_owned();
    if regular_file::is_irregular(&source) {
        return DevError::Irregular { path, source };
    }
    DevError::Io { action, path, source }
}

/// Whether users other than the owner may read or write a file. A missing file is not exposed: the key of the CA may be absent.
fn is_exposed(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & OTHERS != 0)
}

/// The text of a file. `None` if the file does not exist. Bytes that are not UTF-8 become text that is not PEM.
fn read(path: &Path) -> Result<Option<String>, DevError> {
    match tls::read_pem(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io_error("read", path, source)),
    }
}

/// The expiry of a valid leaf. `None` if the leaf is not valid. Checks like a client: signed by the CA, valid now, for servers, for all of
/// [`LEAF_NAMES`], and with its own key.
fn good_until(ca_pem: &str, certificate_pem: &str, key_pem: &str, now: Timestamp) -> Option<Timestamp> {
    let pem = tls::Pem {
        certificate_path: Path::new("tls.crt"),
        certificate: certificate_pem.as_bytes(),
        key_path: Path::new("tls.key"),
        key: key_pem.as_bytes(),
    };
    let key = tls::parse(pem).ok()?;
    let leaf = key.end_entity_cert().ok()?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).ok()?).ok()?;
    let provider = Arc::new(tls::provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().ok()?;
    let at = UnixTime::since_unix_epoch(now.duration_since(Timestamp::UNIX_EPOCH).try_into().ok()?);
    for name in LEAF_NAMES {
        let name = ServerName::try_from(name).ok()?;
        verifier.verify_server_cert(leaf, &[], &name, &[], at).ok()?;
    }
    bundle::validity(leaf).map(|(_, not_after)| not_after)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn now() -> Timestamp {
        "2026-11-20T12:00:00Z".parse().unwrap()
    }

    fn fresh() -> (tempfile::TempDir, DevCertificates) {
        let dir = tempfile::tempdir().unwrap();
        let created = ensure(dir.path(), now()).unwrap();
        assert_eq!(created.created, Created::Everything);
        (dir, created)
    }

    fn replaces_the_leaf_only(dir: &Path, before: &DevCertificates, at: Timestamp) {
        let after = ensure(dir, at).unwrap();
        assert_eq!(after.created, Created::Leaf);
        assert_eq!(after.ca_pem, before.ca_pem);
        assert_ne!(after.certificate_pem, before.certificate_pem);
        assert_eq!(ensure(dir, at).unwrap().created, Created::Nothing);
    }

    #[test]
    fn a_second_run_keeps_the_files_of_the_first() {
        let (dir, created) = fresh();
        for (name, mode) in [("ca.crt", 0o644), ("ca.key", 0o600), ("tls.crt", 0o644), ("tls.key", 0o600)] {
            let found = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
            assert_eq!(found, mode, "{name}");
        }
        let kept = ensure(dir.path(), now() + DAY).unwrap();
        assert_eq!(kept.created, Created::Nothing);
        assert_eq!((&kept.ca_pem, &kept.certificate_pem), (&created.ca_pem, &created.certificate_pem));
        assert_eq!(kept.not_after, now() + LEAF_LIFETIME);
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 5, "four files and the lock, no temporary ones: {names:?}");
    }

    #[test]
    fn a_leaf_that_is_about_to_expire_is_replaced_in_time() {
        let (dir, created) = fresh();
        let last_good_day = now() + LEAF_LIFETIME - RENEW_BEFORE - DAY;
        assert_eq!(ensure(dir.path(), last_good_day).unwrap().created, Created::Nothing);
        replaces_the_leaf_only(dir.path(), &created, last_good_day + DAY + DAY);
    }

    #[test]
    fn a_missing_corrupt_unpaired_or_foreign_leaf_is_replaced() {
        let (_other, foreign) = fresh();
        for (name, text) in [
            ("tls.crt", None),
            ("tls.key", None),
            ("tls.crt", Some("junk")),
            ("tls.key", Some("")),
            ("tls.key", Some(foreign.key_pem.as_str())),
            ("tls.crt", Some(foreign.certificate_pem.as_str())),
        ] {
            let (dir, created) = fresh();
            match text {
                Some(text) => fs::write(dir.path().join(name), text).unwrap(),
                None => fs::remove_file(dir.path().join(name)).unwrap(),
            }
            replaces_the_leaf_only(dir.path(), &created, now());
        }
        let (dir, created) = fresh();
        fs::write(dir.path().join("tls.crt"), &foreign.certificate_pem).unwrap();
        fs::write(dir.path().join("tls.key"), &foreign.key_pem).unwrap();
        replaces_the_leaf_only(dir.path(), &created, now());
    }

    #[test]
    fn a_ca_that_cannot_be_used_is_reported_and_left_alone() {
        let (_other, foreign) = fresh();
        for (name, text) in
            [("ca.crt", "junk"), ("ca.crt", foreign.certificate_pem.as_str()), ("ca.key", foreign.key_pem.as_str())]
        {
            let (dir, _) = fresh();
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            fs::remove_file(dir.path().join("tls.crt")).unwrap();
            let error = ensure(dir.path(), now()).unwrap_err();
            assert!(matches!(&error, DevError::Authority { path: at, .. } if *at == path), "{error}");
            assert!(error.to_string().contains("--force"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(replace(dir.path(), now()).unwrap().created, Created::Everything);
            assert_eq!(ensure(dir.path(), now()).unwrap().created, Created::Nothing);
        }
    }

    #[test]
    fn an_expired_ca_is_reported() {
        let (dir, _) = fresh();
        let error = ensure(dir.path(), now() + CA_LIFETIME + DAY).unwrap_err();
        assert!(matches!(error, DevError::Authority { source: AuthorityError::OutOfDate { .. }, .. }), "{error}");
    }

    #[test]
    fn the_last_leaf_of_a_ca_is_kept_to_its_end() {
        let (dir, _) = fresh();
        let late = now() + CA_LIFETIME - DAY;
        let last = ensure(dir.path(), late).unwrap();
        assert_eq!((last.created, last.not_after), (Created::Leaf, now() + CA_LIFETIME));
        assert_eq!(ensure(dir.path(), late).unwrap().created, Created::Nothing);
    }

    #[test]
    fn an_incomplete_ca_is_reported_only_if_it_is_needed() {
        let (dir, _) = fresh();
        fs::remove_file(dir.path().join("ca.key")).unwrap();
        assert_eq!(ensure(dir.path(), now()).unwrap().created, Created::Nothing);
        fs::remove_file(dir.path().join("tls.key")).unwrap();
        assert!(
            matches!(ensure(dir.path(), now()), Err(DevError::Incomplete { missing, .. }) if missing.ends_with("ca.key"))
        );

        let (dir, _) = fresh();
        fs::remove_file(dir.path().join("ca.crt")).unwrap();
        assert!(
            matches!(ensure(dir.path(), now()), Err(DevError::Incomplete { missing, .. }) if missing.ends_with("ca.crt"))
        );
        fs::remove_file(dir.path().join("ca.key")).unwrap();
        assert!(
            matches!(ensure(dir.path(), now()), Err(DevError::Incomplete { present, .. }) if present.ends_with("tls.crt"))
        );
    }

    #[test]
    fn a_path_that_is_not_a_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = ensure(&file, now()).unwrap_err();
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }

    #[test]
    fn a_lock_that_is_a_link_or_pipe_is_named_and_not_truncated() {
        for target in ["precious", "nowhere"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("precious"), "precious").unwrap();
            symlink(target, dir.path().join(".lock")).unwrap();
            let error = anyhow::Error::new(ensure(dir.path(), now()).unwrap_err());
            let said = format!("{error:#}");
            assert!(said.contains("/.lock: remove it") && said.contains("it is a symbolic link"), "{said}");
            assert_eq!(fs::read_to_string(dir.path().join("precious")).unwrap(), "precious");
            assert!(!dir.path().join("nowhere").exists());
        }
    }

    #[test]
    fn a_pipe_in_place_of_a_file_is_named_without_hanging() {
        for name in [".lock", "ca.crt", "ca.key", "tls.crt", "tls.key"] {
            let (dir, _) = fresh();
            let path = dir.path().join(name);
            fs::remove_file(&path).unwrap();
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let error = ensure(dir.path(), now()).unwrap_err();
            assert!(matches!(&error, DevError::Irregular { path: at, .. } if *at == path), "{name}: {error}");
        }
    }

    #[test]
    fn keys_that_others_can_read_are_named() {
        let (dir, created) = fresh();
        assert!(created.exposed_keys.is_empty());
        for (name, mode) in [("tls.key", 0o640), ("ca.key", 0o604)] {
            let path = dir.path().join(name);
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let found = ensure(dir.path(), now()).unwrap();
            assert_eq!((found.created, found.exposed_keys), (Created::Nothing, vec![path.clone()]));
            fs::set_permissions(&path, Permissions::from_mode(KEY_MODE)).unwrap();
        }
        // Kubernetes mounts files as links.
        let linked = dir.path().join("tls.key");
        fs::rename(&linked, dir.path().join("data")).unwrap();
        symlink("data", &linked).unwrap();
        let found = ensure(dir.path(), now()).unwrap();
        assert_eq!((found.created, found.exposed_keys), (Created::Nothing, vec![]));
    }

    #[test]
    fn concurrent_runs_use_the_same_certificates() {
        let dir = tempfile::tempdir().unwrap();
        let all: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..8).map(|_| scope.spawn(|| ensure(dir.path(), now()).unwrap())).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(all.iter().filter(|created| created.created == Created::Everything).count(), 1);
        assert!(all.iter().all(|created| created.certificate_pem == all[0].certificate_pem));
    }
}
