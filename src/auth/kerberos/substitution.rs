//! The last part of a rule, `s/FROM/TO/g`: replaces matches of a regular expression as Java's `Matcher` does.

use super::pattern::{self, Reach};
use regex::{Captures, Regex};

/// What stands for a match.
#[derive(Clone, Debug)]
pub(super) struct Substitution {
    from: Regex,
    to: Vec<Part>,
    /// All matches are replaced, not the first alone.
    repeats: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Part {
    Char(char),
    Group(usize),
}

impl Substitution {
    /// # Errors
    /// When Java would refuse one of the two, at the start or at the first match.
    pub fn parse(from: &str, to: &str, repeats: bool) -> Result<Self, String> {
        let from = pattern::compile(from, Reach::Part)?;
        let to = parse_replacement(to, from.captures_len() - 1)?;
        Ok(Self { from, to, repeats })
    }

    /// Replaces the first match, or all. After a match that is not empty there may be an empty one at its end, as in Java.
    pub fn apply(&self, base: &str) -> String {
        let (mut made, mut copied, mut at) = (String::new(), 0, 0);
        while at <= base.len() {
            let Some(found) = self.from.captures_at(base, at) else { break };
            let whole = found.get_match();
            made.push_str(&base[copied..whole.start()]);
            self.put_replacement(&found, &mut made);
            copied = whole.end();
            if !self.repeats {
                break;
            }
            let step = base[copied..].chars().next().map_or(1, char::len_utf8);
            at = copied + if whole.is_empty() { step } else { 0 };
        }
        made.push_str(&base[copied..]);
        made
    }

    fn put_replacement(&self, found: &Captures<'_>, made: &mut String) {
        for part in &self.to {
            match part {
                Part::Char(c) => made.push(*c),
                Part::Group(number) => {
                    made.push_str(found.get(*number).map_or("", |group| group.as_str()));
                }
            }
        }
    }
}

/// * `groups`: how many groups the regular expression has. A further digit belongs to a group's number if there is such a group.
///
/// Source: `Matcher.appendReplacement`, JDK 17.
fn parse_replacement(to: &str, groups: usize) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut chars = to.chars().peekable();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '\\' => Part::Char(chars.next().ok_or("the replacement ends with a \\")?),
            '$' => {
                let digit = chars.next().and_then(|c| c.to_digit(10));
                let mut number =
                    digit.ok_or("$ of the replacement needs a number after it")? as usize;
                if groups < number {
                    return Err(format!(
                        "the replacement has ${number}, and there is no group {number}"
                    ));
                }
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    let longer = number * 10 + digit as usize;
                    if groups < longer {
                        break;
                    }
                    number = longer;
                    chars.next();
                }
                Part::Group(number)
            }
            c => Part::Char(c),
        });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: C-222
    #[test]
    fn matches_are_replaced_as_java_does() {
        for (from, to, repeats, base, made) in [
            (".*", "x", false, "abc", "x"),
            (".*", "x", true, "abc", "xx"),
            ("a*", "-", true, "baac", "-b--c-"),
            ("@.*", "", false, "bob@R", "bob"),
            ("^(.)(.*)$", "$2$1\\$\\1", true, "abc", "bca$1"),
            ("(a)|b", "[$1]", true, "ab", "[a][]"),
            ("(a)", "$12", false, "a", "a2"),
            ("^a", "", true, "aaa", "aa"),
            ("", "-", true, "ä", "-ä-"),
        ] {
            let substitution = Substitution::parse(from, to, repeats).unwrap();
            assert_eq!(substitution.apply(base), made, "s/{from}/{to}/ of {base}");
        }
    }
}
