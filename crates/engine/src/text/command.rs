//! Commands in sentences. People paste them into a shell, so each word is quoted where a shell would read something else in it.

/// A command with these words, as a shell reads it.
pub fn command(words: &[&str]) -> String {
    shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.first().copied().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_and_nothing_else() {
        assert_eq!(command(&["helm", "upgrade", "web.v1", "CHART"]), "helm upgrade web.v1 CHART");
        let patch = r#"{"spec":{"suspend":true}}"#;
        assert_eq!(command(&["kubectl", "-p", patch]), format!("kubectl -p '{patch}'"));
        for evil in ["web; reboot", "$(reboot)", "`reboot`", "a'b", "a\nb", ""] {
            let read = shlex::split(&command(&["helm", "uninstall", evil]));
            assert_eq!(read.as_deref(), Some(&["helm".to_owned(), "uninstall".to_owned(), evil.to_owned()][..]));
        }
        assert_eq!(command(&["helm", "a\0b"]), "helm");
    }
}
