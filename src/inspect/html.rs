//! The common parts of the HTML pages: escaping, digests for the Content-Security-Policy, and the style `html/base.css`.

use std::fmt::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_engine::text::{MAX_MESSAGE_BYTES, printable};
use sha2::{Digest, Sha256};

/// `10,000`.
pub(crate) fn grouped(number: impl ToString) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The SHA-256 digest of a script or style sheet for the Content-Security-Policy.
pub(crate) fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// The start of a page that is one file, without a script: everything up to the line below its heading. The Content-Security-Policy allows
/// only its own style. `style`, `title`, `brand` and `heading` are texts of the program.
pub(crate) struct PageHead {
    pub(crate) style: &'static str,
    pub(crate) title: &'static str,
    pub(crate) brand: &'static str,
    pub(crate) heading: &'static str,
}

impl fmt::Display for PageHead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { style, title, brand, heading } = self;
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; \
             form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n<header>\n\
             <p class=\"brand\">{brand}</p>\n<h1>{heading}</h1>\n",
            digest(style),
        )
    }
}

/// Escaped text for use between tags and in quoted attributes. It is printable, and at most 8 KiB long.
pub(crate) struct Escaped<'t>(pub(crate) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in printable(self.0, MAX_MESSAGE_BYTES).chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                plain => out.write_char(plain)?,
            }
        }
        Ok(())
    }
}
