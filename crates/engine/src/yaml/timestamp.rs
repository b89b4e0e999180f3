//! Times that go-yaml accepts after `!!timestamp`.

/// Whether Go parses a text with one of go-yaml's four formats: a date; a date, blanks and a time; a date, `T` or `t`,
/// a time and an offset. Months, days, hours, minutes and seconds have one or two digits.
pub(super) fn is_timestamp(text: &str) -> bool {
    let mut rest = Rest(text);
    match rest.date() {
        Some(()) if rest.0.is_empty() => true,
        Some(()) if rest.0.starts_with(' ') => {
            rest.0 = rest.0.trim_start_matches(' ');
            rest.time().is_some() && rest.0.is_empty()
        }
        Some(()) => rest.skip(&['T', 't']).is_some() && rest.time().is_some() && rest.is_offset(),
        None => false,
    }
}

/// The part that is not parsed yet.
struct Rest<'t>(&'t str);

impl Rest<'_> {
    fn date(&mut self) -> Option<()> {
        let year =
            self.0.get(..4).filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<i16>().ok()?;
        self.0 = &self.0[4..];
        self.skip(&['-'])?;
        let month = self.number(12)?;
        self.skip(&['-'])?;
        let day = self.number(31)?;
        jiff::civil::Date::new(year, month, day).ok().map(|_| ())
    }

    fn time(&mut self) -> Option<()> {
        self.number(23)?;
        self.skip(&[':'])?;
        self.number(59)?;
        self.skip(&[':'])?;
        self.number(59)?;
        let fraction = self.0.strip_prefix(['.', ',']).unwrap_or_default();
        if fraction.starts_with(|digit: char| digit.is_ascii_digit()) {
            self.0 = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
        }
        Some(())
    }

    /// Whether the rest is `Z` or `+07:00`.
    fn is_offset(&self) -> bool {
        let number = |range, most| {
            let digits: Option<&str> = self.0.get::<std::ops::Range<usize>>(range);
            digits.is_some_and(|digits| {
                digits.bytes().all(|byte| byte.is_ascii_digit())
                    && digits.parse::<u8>().is_ok_and(|number| number <= most)
            })
        };
        let is_numeric = self.0.len() == 6 && self.0.starts_with(['+', '-']) && &self.0.as_bytes()[3..4] == b":";
        self.0 == "Z" || is_numeric && number(1..3, 24) && number(4..6, 60)
    }

    /// A number of one or two digits.
    fn number(&mut self, most: i8) -> Option<i8> {
        let digits = self.0.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.parse().ok().filter(|number| *number <= most)
    }

    fn skip(&mut self, one_of: &[char]) -> Option<()> {
        self.0 = self.0.strip_prefix(one_of)?;
        Some(())
    }
}
