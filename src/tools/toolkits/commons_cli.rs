//! Arguments as commons-cli 1.5 parses them, which two of Java's tools use: bundled short options, shortened long ones.

/// An option that a tool knows.
pub struct Known {
    pub short: char,
    pub long: &'static str,
    pub takes_value: bool,
    pub required: bool,
}

/// The parsed arguments.
#[derive(Debug, Default, Eq, PartialEq)]
pub struct Parsed {
    found: Vec<(char, Option<String>)>,
    /// What is no option.
    pub rest: Vec<String>,
}

impl Parsed {
    pub fn has(&self, short: char) -> bool {
        self.found.iter().any(|(found, _)| *found == short)
    }

    /// The first value of an option.
    pub fn value(&self, short: char) -> Option<&str> {
        self.found
            .iter()
            .filter(|(found, _)| *found == short)
            .find_map(|(_, value)| value.as_deref())
    }
}

/// Parses the arguments of a tool; an error is the text that Java prints.
///
/// Source: `DefaultParser`, commons-cli 1.5.0.
pub fn parse(known: &[Known], arguments: &[String]) -> Result<Parsed, String> {
    let mut parser = Parser { known, parsed: Parsed::default(), waiting: None };
    let mut arguments = arguments.iter();
    for token in arguments.by_ref() {
        if token == "--" {
            break;
        }
        parser.token(token)?;
    }
    parser.parsed.rest.extend(arguments.cloned());
    parser.nothing_waits()?;
    let is_missing = |known: &&Known| known.required && !parser.parsed.has(known.short);
    let missing: Vec<String> =
        known.iter().filter(is_missing).map(|known| known.short.to_string()).collect();
    match missing.len() {
        0 => Ok(parser.parsed),
        1 => Err(format!("Missing required option: {}", missing[0])),
        _ => Err(format!("Missing required options: {}", missing.join(", "))),
    }
}

struct Parser<'k> {
    known: &'k [Known],
    parsed: Parsed,
    /// An option whose value comes next.
    waiting: Option<char>,
}

impl<'k> Parser<'k> {
    fn token(&mut self, token: &str) -> Result<(), String> {
        if self.waiting.is_some() && !self.is_option(token) {
            self.give(unquoted(token));
            return Ok(());
        }
        match token.strip_prefix("--") {
            Some(name) => self.long(name, token),
            None if token.len() > 1 && token.starts_with('-') => self.short(&token[1..], token),
            None => {
                self.parsed.rest.push(token.to_owned());
                Ok(())
            }
        }
    }

    fn give(&mut self, value: &str) {
        self.waiting = None;
        if let Some((_, last)) = self.parsed.found.last_mut() {
            *last = Some(value.to_owned());
        }
    }

    fn nothing_waits(&self) -> Result<(), String> {
        self.waiting.map_or(Ok(()), |short| Err(format!("Missing argument for option: {short}")))
    }

    fn found(&mut self, known: &Known) -> Result<(), String> {
        self.nothing_waits()?;
        self.parsed.found.push((known.short, None));
        self.waiting = known.takes_value.then_some(known.short);
        Ok(())
    }

    fn by_short(&self, short: char) -> Option<&'k Known> {
        self.known.iter().find(|known| known.short == short)
    }

    /// The options that a long name may mean: the one of that name, else those that begin with it.
    fn by_long(&self, name: &str) -> Vec<&'k Known> {
        let exact = self.known.iter().find(|known| known.long == name);
        let begin = || self.known.iter().filter(|known| known.long.starts_with(name)).collect();
        exact.map_or_else(begin, |known| vec![known])
    }

    /// The option whose long name the text begins with.
    fn long_prefix(&self, text: &str) -> Option<&'k Known> {
        self.known
            .iter()
            .filter(|known| text.starts_with(known.long))
            .max_by_key(|known| known.long.len())
    }

    /// Whether a token is an option rather than a value.
    fn is_option(&self, token: &str) -> bool {
        let Some(text) = token.strip_prefix('-').filter(|text| !text.is_empty()) else {
            return false;
        };
        let name = text.split('=').next().unwrap_or_default();
        let long = name.trim_start_matches('-');
        name.chars().next().is_some_and(|short| self.by_short(short).is_some())
            || (!long.is_empty() && !self.by_long(long).is_empty())
            || (!text.starts_with('-') && self.long_prefix(text).is_some())
    }

    fn long(&mut self, text: &str, token: &str) -> Result<(), String> {
        let (name, value) =
            text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let matching = self.by_long(name);
        match (matching.as_slice(), value) {
            ([], _) => Err(unknown(token)),
            ([known], None) => self.found(known),
            ([known], Some(value)) if known.takes_value => {
                self.found(known)?;
                self.give(value);
                Ok(())
            }
            ([_], Some(_)) => Err(unknown(token)),
            (several, _) => {
                let names: Vec<String> =
                    several.iter().map(|known| format!("'{}'", known.long)).collect();
                let asked = token.split('=').next().unwrap_or_default();
                Err(format!("Ambiguous option: '{asked}'  (could be: {})", names.join(", ")))
            }
        }
    }

    fn short(&mut self, text: &str, token: &str) -> Result<(), String> {
        let mut chars = text.chars();
        let (first, rest) = (chars.next(), chars.as_str());
        let known = first.and_then(|first| self.by_short(first));
        if rest.is_empty() {
            return known.map_or_else(|| Err(unknown(token)), |known| self.found(known));
        }
        if let Some(value) = rest.strip_prefix('=') {
            let known = known.filter(|known| known.takes_value).ok_or_else(|| unknown(token))?;
            self.found(known)?;
            self.give(value);
            return Ok(());
        }
        if text.contains('=') || !self.by_long(text).is_empty() {
            return self.long(text, token);
        }
        if let Some(known) = self.long_prefix(text).filter(|known| known.takes_value) {
            self.found(known)?;
            self.give(&text[known.long.len()..]);
            return Ok(());
        }
        for (at, short) in text.char_indices() {
            let known = self.by_short(short).ok_or_else(|| unknown(token))?;
            self.found(known)?;
            let rest = &text[at + short.len_utf8()..];
            if self.waiting.is_some() && !rest.is_empty() {
                self.give(unquoted(rest));
                break;
            }
        }
        Ok(())
    }
}

fn unknown(token: &str) -> String {
    format!("Unrecognized option: {token}")
}

fn unquoted(value: &str) -> &str {
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.filter(|inner| !inner.contains('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        Known { short: 'c', long: "chop", takes_value: false, required: false },
        Known { short: 'v', long: "verbose", takes_value: false, required: false },
        Known { short: 'z', long: "zxid", takes_value: true, required: false },
        Known { short: 'x', long: "verify", takes_value: true, required: false },
    ];

    fn parse(arguments: &[&str]) -> Result<Parsed, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        super::parse(KNOWN, &arguments)
    }

    #[test]
    fn values_may_be_joined_or_follow() {
        for arguments in [
            &["-cz5", "f"][..],
            &["--zxid=5", "-c", "f"],
            &["f", "-z", "5", "--ch"],
            &["-c", "-z=5", "f"],
            &["-c", "-zxid5", "--", "f"],
        ] {
            let parsed = parse(arguments).unwrap();
            assert!(
                parsed.has('c') && parsed.value('z') == Some("5") && parsed.rest == ["f"],
                "{arguments:?}"
            );
        }
        assert_eq!(parse(&["-z", "-1"]).unwrap().value('z'), Some("-1"));
        assert_eq!(parse(&["-z", "\"a b\""]).unwrap().value('z'), Some("a b"));
    }

    #[test]
    fn errors_have_the_text_of_commons_cli() {
        assert_eq!(parse(&["-q"]).unwrap_err(), "Unrecognized option: -q");
        assert_eq!(parse(&["-cq"]).unwrap_err(), "Unrecognized option: -cq");
        assert_eq!(parse(&["--chop=1"]).unwrap_err(), "Unrecognized option: --chop=1");
        assert_eq!(parse(&["-z", "-c"]).unwrap_err(), "Missing argument for option: z");
        assert_eq!(
            parse(&["--ver"]).unwrap_err(),
            "Ambiguous option: '--ver'  (could be: 'verbose', 'verify')"
        );
    }
}
