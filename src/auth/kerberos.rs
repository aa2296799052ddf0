//! Short names of Kerberos principals by the rules of `security.auth_to_local` (U-19).
//!
//! Source: `KerberosName`, ZooKeeper 3.9.5.

mod pattern;
mod substitution;

use super::principal::Principal;
use regex::Regex;
use substitution::Substitution;

/// Limit on the text of the rules, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Rules that make short names; the first one that fits decides.
#[derive(Clone, Debug)]
pub struct NameRules {
    text: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    /// `DEFAULT`: names of the default realm lose it.
    Default,
    /// `RULE:[COMPONENTS:FORMAT](MATCH)s/FROM/TO/g`.
    Pattern {
        components: usize,
        format: Vec<Part>,
        fits: Option<Regex>,
        substitution: Option<Substitution>,
    },
}

/// A part of a rule's format.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Text(String),
    /// `$0` is the realm, `$1` the service, `$2` the host.
    Parameter(usize),
}

/// Why rules are refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RuleError {
    #[error("the rules have {0} bytes, more than {TEXT_BYTES_MAX}")]
    TooLong(usize),
    #[error("rule \"{rule}\": {reason}")]
    Rule { rule: String, reason: String },
}

impl Default for NameRules {
    fn default() -> Self {
        Self { text: "DEFAULT".to_owned(), rules: vec![Rule::Default] }
    }
}

impl PartialEq for NameRules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl NameRules {
    /// Parses rules; nothing has to divide them.
    ///
    /// # Errors
    /// [`RuleError`] for a rule that Java refuses or could never apply, and for regular expressions that may mean something
    /// else here than in Java.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(RuleError::TooLong(text.len()));
        }
        let mut rules = Vec::new();
        let mut rest = text.trim_matches(|c| c <= ' ');
        while !rest.is_empty() {
            let start = rest.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
            let (rule, after) = Rule::take(start).map_err(|reason| RuleError::Rule {
                rule: start.chars().take(80).collect(),
                reason,
            })?;
            rules.push(rule);
            rest = after;
        }
        Ok(Self { text: text.to_owned(), rules })
    }

    /// The rules as they were set.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The short name; `None`: no rule fits, or the one that fits makes a name with a `/` or `@`.
    ///
    /// A name with a line end, or with a character that Java keeps as two, fits no rule: its regular expressions judge those in
    /// ways of their own.
    pub fn short(&self, principal: Principal<'_>, default_realm: &str) -> Option<String> {
        let Some(realm) = principal.realm else { return Some(principal.service.to_owned()) };
        let parameters: Vec<&str> =
            [realm, principal.service].into_iter().chain(principal.host).collect();
        if parameters.iter().any(|part| part.chars().any(is_special)) {
            return None;
        }
        let short = self.rules.iter().find_map(|rule| rule.apply(&parameters, default_realm))?;
        Some(short).filter(|short| !short.contains(['/', '@']))
    }
}

/// Line ends of Java's regular expressions, and characters beyond 16 bits.
fn is_special(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}') || c > '\u{ffff}'
}

impl Rule {
    /// Takes a rule off the front of `text`, and returns what follows it.
    fn take(text: &str) -> Result<(Self, &str), String> {
        if let Some(rest) = text.strip_prefix("DEFAULT") {
            return Ok((Self::Default, rest));
        }
        let rest = text.strip_prefix("RULE:[").ok_or("neither DEFAULT nor RULE:[")?;
        let (components, rest) = rest.split_once(':').ok_or("no colon after the components")?;
        let is_number = components.bytes().all(|byte| byte.is_ascii_digit());
        let components: i32 = components
            .parse()
            .ok()
            .filter(|_| is_number)
            .ok_or("no number of components before the colon")?;
        let components = usize::try_from(components).unwrap_or(0);
        let (format, mut rest) = rest.split_once(']').ok_or("no ] after the format")?;
        let format = parse_format(format, components)?;
        let mut fits = None;
        if let Some((inner, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'))
        {
            fits = Some(pattern::compile(inner, pattern::Reach::Whole)?);
            rest = after;
        }
        let mut substitution = None;
        if let Some((from, (to, after))) = rest
            .strip_prefix("s/")
            .and_then(|inner| inner.split_once('/'))
            .and_then(|(from, after)| Some((from, after.split_once('/')?)))
        {
            let repeats = after.starts_with('g');
            substitution = Some(Substitution::parse(from, to, repeats)?);
            rest = after.strip_prefix('g').unwrap_or(after);
        }
        Ok((Self::Pattern { components, format, fits, substitution }, rest))
    }

    /// What the rule makes of a name; `None`: it does not fit.
    ///
    /// * `parameters`: realm, service and host, if there is a host.
    fn apply(&self, parameters: &[&str], default_realm: &str) -> Option<String> {
        let Self::Pattern { components, format, fits, substitution } = self else {
            return (parameters[0] == default_realm).then(|| parameters[1].to_owned());
        };
        if parameters.len() - 1 != *components {
            return None;
        }
        let base: String = format
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.as_str(),
                Part::Parameter(number) => parameters[*number],
            })
            .collect();
        if fits.as_ref().is_some_and(|fits| !fits.is_match(&base)) {
            return None;
        }
        Some(match substitution {
            Some(substitution) => substitution.apply(&base),
            None => base,
        })
    }
}

fn parse_format(format: &str, components: usize) -> Result<Vec<Part>, String> {
    if format.chars().any(is_special) {
        return Err("the format has a line end or a character beyond U+FFFF".to_owned());
    }
    let mut pieces = format.split('$');
    let first = pieces.next().unwrap_or_default();
    let mut parts = vec![Part::Text(first.to_owned())];
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, text) = piece.split_at(digits);
        let number = number.parse().ok().filter(|&number: &usize| number <= components);
        let number = number.ok_or_else(|| {
            format!("$ of the format needs a number from 0 to {components} after it")
        })?;
        parts.extend([Part::Parameter(number), Part::Text(text.to_owned())]);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(rules: &str, name: &str) -> Option<String> {
        let rules = NameRules::parse(rules).unwrap();
        Principal::parse(name).and_then(|principal| rules.short(principal, "R"))
    }

    /// Turns `%xx` into bytes.
    fn text(coded: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = coded.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            let hex = after.get(..2).filter(|_| byte == b'%');
            let code =
                hex.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).unwrap(), 16).ok());
            bytes.push(code.unwrap_or(byte));
            rest = &after[if code.is_some() { 2 } else { 0 }..];
        }
        String::from_utf8(bytes).unwrap()
    }

    /// Java's answers (compat-tests/golden/kerberos/Short.java says how they are written). Rules that Java takes and this server
    /// refuses are listed in a file beside them.
    // rows: C-222 U-19
    #[test]
    fn short_names_are_javas() {
        let golden = include_str!("../../compat-tests/golden/kerberos/expected.txt");
        let (mut agreed, mut refused) = (0, std::collections::BTreeSet::new());
        let mut last = ("", NameRules::parse(""));
        for line in golden.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let &[rules, name, expected] = fields.as_slice() else { panic!("{line}") };
            if last.0 != rules {
                last = (rules, NameRules::parse(&text(rules)));
            }
            match (&last.1, expected) {
                (Err(_), "!") => agreed += 1,
                (Ok(_), "!" | "~") => panic!("Java refuses {line}"),
                (Err(_), _) => {
                    refused.insert(rules);
                }
                (Ok(parsed), expected) => {
                    let name = text(name);
                    let principal = Principal::parse(&name).unwrap();
                    let expected = (expected != "-").then(|| text(&expected[1..]));
                    assert_eq!(parsed.short(principal, "EXAMPLE.COM"), expected, "{line}");
                    agreed += 1;
                }
            }
        }
        assert!(agreed > 1500, "{agreed}");
        let refused: String = refused.into_iter().map(|rules| format!("{rules}\n")).collect();
        let known = include_str!("../../compat-tests/golden/kerberos/refused-here.txt");
        assert_eq!(refused, known);
    }

    // rows: C-222
    #[test]
    fn first_rule_that_fits_decides() {
        let rules = "RULE:[2:$1@$0](zk@R)s/.*/super/ RULE:[1:$1](a.*)DEFAULT";
        assert_eq!(short(rules, "zk/h@R").as_deref(), Some("super"));
        assert_eq!(short(rules, "zk/h@S"), None);
        assert_eq!(short(rules, "abc@S").as_deref(), Some("abc"));
        assert_eq!(short(rules, "bob@R").as_deref(), Some("bob"));
        assert_eq!(short(rules, "bob@S"), None);
        assert_eq!(short(rules, "bob").as_deref(), Some("bob"));
        let not_simple = "RULE:[1:$1@$0] RULE:[1:$1]";
        assert_eq!(short(not_simple, "bob@R"), None, "the second rule is not asked");
        assert_eq!(short("RULE:[1:$1]", "b\nob@R"), None);
        assert_eq!(short("", "bob@R"), None);
    }

    // rows: C-222
    #[test]
    fn malformed_rules_are_refused_with_their_text() {
        for (rules, reason) in [
            ("x", "rule \"x\": neither DEFAULT nor RULE:["),
            ("DEFAULT,DEFAULT", "rule \",DEFAULT\": neither DEFAULT nor RULE:["),
            ("RULE:[1:$1]s/a/b/L", "rule \"L\": neither"),
            ("RULE:[1:$1](a", "rule \"(a\": neither"),
            ("RULE:[:$1]", "number of components"),
            ("RULE:[+1:$1]", "number of components"),
            ("RULE:[99999999999:$1]", "number of components"),
            ("RULE:[1:$2]", "needs a number from 0 to 1"),
            ("RULE:[1:$]", "needs a number from 0 to 1"),
            ("RULE:[1:$1](*)", "regular expression"),
            ("RULE:[1:$1]s/(a/b/", "regular expression"),
            ("RULE:[1:$1]s/a/$1/", "no group 1"),
            ("RULE:[1:$1]s/a/b\\/", "ends with"),
        ] {
            let error = NameRules::parse(rules).unwrap_err().to_string();
            assert!(error.contains(reason), "{rules}: {error}");
        }
        assert!(NameRules::parse(&" ".repeat(TEXT_BYTES_MAX + 1)).is_err());
    }
}
