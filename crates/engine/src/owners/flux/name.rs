//! The names of Flux's releases.

use sha2::{Digest, Sha256};

use crate::release::MAX_RELEASE_NAME_LENGTH;

/// The number of hexadecimal digits of the digest in a shortened name.
const DIGEST_DIGITS: usize = 12;

/// The release name that Flux passes to Helm. A name of more than 53 bytes is shortened to its first 40 bytes, `-`, and
/// the first 12 hexadecimal digits of the SHA-256 of the whole name.
#[must_use]
pub(crate) fn shortened_release_name(name: &str) -> String {
    if name.len() <= MAX_RELEASE_NAME_LENGTH {
        return name.to_owned();
    }
    // The API server allows only ASCII, but a request may come from elsewhere.
    let head = name.floor_char_boundary(MAX_RELEASE_NAME_LENGTH - DIGEST_DIGITS - 1);
    let digest = Sha256::digest(name);
    let digits =
        digest.iter().take(DIGEST_DIGITS / 2).fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"));
    format!("{}-{digits}", &name[..head])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_helm_accepts_are_unchanged() {
        for name in ["", "web", &"a".repeat(MAX_RELEASE_NAME_LENGTH)] {
            assert_eq!(shortened_release_name(name), name);
        }
    }

    #[test]
    fn longer_names_end_in_their_digest() {
        // Computed with `printf NAME | sha256sum`.
        for (name, wanted) in [
            (
                "release-name-that-is-longer-than-the-53-characters-of-helm",
                "release-name-that-is-longer-than-the-53--223cdd98dd69",
            ),
            (
                "shop-front-end-of-the-production-cluster-in-the-north-1",
                "shop-front-end-of-the-production-cluster-782afb945350",
            ),
            (
                "shop-front-end-of-the-production-cluster-in-the-north-2",
                "shop-front-end-of-the-production-cluster-b0a43745e25c",
            ),
        ] {
            assert_eq!(shortened_release_name(name), wanted);
            assert_eq!(wanted.len(), MAX_RELEASE_NAME_LENGTH);
        }
        assert!(shortened_release_name(&"ü".repeat(40)).len() <= MAX_RELEASE_NAME_LENGTH);
    }
}
