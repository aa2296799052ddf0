//! Java's regular expressions, in the part of their syntax that means the same to crate `regex`, written in that crate's.
//!
//! Refused: look-around, back references, possessive quantifiers, flags, named groups, classes in classes, boundaries of words and
//! names of properties. Also a quantifier after what may match nothing, as the two engines differ in when they stop then.

use regex::Regex;

/// Limit on the depth of nested groups.
const DEPTH_MAX: usize = 32;
/// Memory of one compiled expression, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Largest number in braces.
const REPEATS_MAX: u32 = 1000;

/// What an expression has to match.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reach {
    Whole,
    Part,
}

/// Compiles an expression. It is for texts without line ends, so that `$` is the text's end.
pub(super) fn compile(java: &str, reach: Reach) -> Result<Regex, String> {
    let refuse = |reason: &str| format!("the regular expression {java:?} {reason}");
    let mut translation = Translation { rest: java, made: String::new(), depth: 0 };
    translation.alternatives().map_err(&refuse)?;
    if !translation.rest.is_empty() {
        return Err(refuse("has a ) without a ("));
    }
    let text = match reach {
        Reach::Whole => format!("^(?:{})$", translation.made),
        Reach::Part => translation.made,
    };
    let mut builder = regex::RegexBuilder::new(&text);
    let compiled =
        builder.size_limit(COMPILED_BYTES_MAX).dfa_size_limit(COMPILED_BYTES_MAX).build();
    compiled.map_err(|_too_large| refuse("is too large"))
}

struct Translation<'j> {
    /// What is not translated yet.
    rest: &'j str,
    made: String,
    depth: usize,
}

/// Whether a part may match an empty text; or why it is refused.
type Outcome = Result<bool, &'static str>;

/// A part that a quantifier may follow, or an anchor, which none may.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Atom {
    Anchor,
    Repeatable { may_be_empty: bool },
}

/// An item of a class.
enum Item {
    Char(char),
    /// A class of its own.
    Class(&'static str),
}

impl Translation<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, start: &str) -> bool {
        let rest = self.rest.strip_prefix(start);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn alternatives(&mut self) -> Outcome {
        let mut may_be_empty = self.sequence()?;
        while self.take("|") {
            self.made.push('|');
            may_be_empty |= self.sequence()?;
        }
        Ok(may_be_empty)
    }

    fn sequence(&mut self) -> Outcome {
        let mut may_be_empty = true;
        while let Some(c) = self.peek().filter(|c| !['|', ')'].contains(c)) {
            let atom = self.atom(c)?;
            may_be_empty &= self.quantifier(atom)?;
        }
        Ok(may_be_empty)
    }

    fn atom(&mut self, c: char) -> Result<Atom, &'static str> {
        self.next();
        let one = Atom::Repeatable { may_be_empty: false };
        match c {
            '(' => return self.group(),
            '[' => self.class()?,
            '.' => self.made.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]"),
            '^' | '$' => {
                self.made.push(c);
                return Ok(Atom::Anchor);
            }
            '\\' if self.take("A") => {
                self.made.push('^');
                return Ok(Atom::Anchor);
            }
            '\\' if self.take("z") || self.take("Z") => {
                self.made.push('$');
                return Ok(Atom::Anchor);
            }
            '\\' => match self.escape()? {
                Item::Char(c) => self.put(c),
                Item::Class(class) => self.made.push_str(class),
            },
            '*' | '+' | '?' | '{' => return Err("has a quantifier after nothing"),
            c => self.put(c),
        }
        Ok(one)
    }

    fn group(&mut self) -> Result<Atom, &'static str> {
        let is_plain = self.take("?:");
        if !is_plain && self.peek() == Some('?') {
            return Err("has a (? that this server does not know; only (?: is");
        }
        self.depth += 1;
        if DEPTH_MAX < self.depth {
            return Err("has too many groups in each other");
        }
        self.made.push_str(if is_plain { "(?:" } else { "(" });
        let may_be_empty = self.alternatives()?;
        if !self.take(")") {
            return Err("has a ( without a )");
        }
        self.made.push(')');
        self.depth -= 1;
        Ok(Atom::Repeatable { may_be_empty })
    }

    fn quantifier(&mut self, atom: Atom) -> Outcome {
        let (text, may_repeat_never) = match self.peek() {
            Some(c @ ('*' | '?' | '+')) => {
                self.next();
                (c.to_string(), c != '+')
            }
            Some('{') => self.braces()?,
            _ => return Ok(atom != Atom::Repeatable { may_be_empty: false }),
        };
        if atom != (Atom::Repeatable { may_be_empty: false }) {
            return Err("repeats what may match nothing");
        }
        self.made.push_str(&text);
        if self.take("?") {
            self.made.push('?');
        } else if self.peek() == Some('+') {
            return Err("has a possessive quantifier");
        }
        Ok(may_repeat_never)
    }

    /// `{n}`, `{n,}` or `{n,m}`, and whether n is 0.
    fn braces(&mut self) -> Result<(String, bool), &'static str> {
        const WRONG: &str = "has a { without numbers of at most 1000 in order";
        let (inner, rest) = self.rest[1..].split_once('}').ok_or(WRONG)?;
        let number = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|&number| is_number && number <= REPEATS_MAX)
        };
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let least = number(least).ok_or(WRONG)?;
        if !most.is_empty() && number(most).is_none_or(|most| most < least) {
            return Err(WRONG);
        }
        self.rest = rest;
        Ok((format!("{{{inner}}}"), least == 0))
    }

    /// What a backslash and the next character stand for, in a class or outside.
    fn escape(&mut self) -> Result<Item, &'static str> {
        Ok(match self.next().ok_or("ends with a \\")? {
            'd' => Item::Class("[0-9]"),
            'D' => Item::Class("[^0-9]"),
            'w' => Item::Class("[a-zA-Z_0-9]"),
            'W' => Item::Class("[^a-zA-Z_0-9]"),
            's' => Item::Class(r"[\t\n\x0B\x0C\r ]"),
            'S' => Item::Class(r"[^\t\n\x0B\x0C\r ]"),
            't' => Item::Char('\t'),
            'n' => Item::Char('\n'),
            'r' => Item::Char('\r'),
            'f' => Item::Char('\x0c'),
            c if c.is_ascii_alphanumeric() => {
                return Err("has a \\ that this server does not know");
            }
            c => Item::Char(c),
        })
    }

    /// A class, after its `[`.
    fn class(&mut self) -> Result<(), &'static str> {
        self.made.push('[');
        if self.take("^") {
            self.made.push('^');
        }
        if self.peek() == Some(']') {
            return Err("has a class that begins with ]; write \\]");
        }
        loop {
            let item = match self.next().ok_or("has a [ without a ]")? {
                ']' => break,
                '[' => return Err("has a class in a class"),
                '&' if self.peek() == Some('&') => return Err("has && in a class"),
                '\\' => self.escape()?,
                c => Item::Char(c),
            };
            match item {
                Item::Class(class) => {
                    self.made.push_str(class);
                    if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                        return Err("has a range that begins with a class");
                    }
                }
                Item::Char(first) => {
                    self.put(first);
                    if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                        self.range_end(first)?;
                    }
                }
            }
        }
        self.made.push(']');
        Ok(())
    }

    /// The `-` of a range and its last character.
    fn range_end(&mut self, first: char) -> Result<(), &'static str> {
        self.next();
        let last = match self.next() {
            Some('\\') => self.escape()?,
            Some(c) if !['[', '&'].contains(&c) => Item::Char(c),
            _ => return Err("has a range without an end"),
        };
        match last {
            Item::Char(last) if first <= last => {
                self.made.push('-');
                self.put(last);
                Ok(())
            }
            _ => Err("has a range that ends before it begins"),
        }
    }

    /// Puts a character that stands for itself.
    fn put(&mut self, c: char) {
        if c.is_ascii_alphanumeric() {
            self.made.push(c);
        } else {
            self.made.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // rows: C-222
    #[test]
    fn expressions_that_may_differ_from_javas_are_refused() {
        for text in [
            "a++", "a*+", "(?=a)", "(?i)a", "(?<n>a)", "(a*)*", "(a|)+", "(a?){2}", "^*", "\\b",
            "\\1", "\\p{L}", "\\Qa\\E", "\\h", "\\x41", "[a[b]]", "[a&&b]", "[]a]", "[z-a]",
            "[\\d-z]", "[a-", "[a", "(a", "a)", "a**", "*", "a{", "a{x}", "a{2,1}", "a{1001}",
            "a\\", "{2}", "[^]",
        ] {
            assert!(compile(text, Reach::Part).is_err(), "{text}");
        }
        let deep = "(".repeat(DEPTH_MAX + 1) + &")".repeat(DEPTH_MAX + 1);
        assert!(compile(&deep, Reach::Part).is_err());
        assert!(compile("(a{1000}){1000}", Reach::Part).is_err(), "too large");
    }

    // rows: C-222
    #[test]
    fn expressions_match_as_in_java() {
        for (text, yes, no) in [
            ("a.c", "abc", "a\u{85}c"),
            ("\\d+", "12", "١"),
            ("[^\\w-]", "ä", "-"),
            ("[a-c&-]", "-", "d"),
            ("a\\.b", "a.b", "aXb"),
            ("a<\\<", "a<<", "a"),
            ("(?:ab|a)(c|bcd)", "abcd", "ab"),
            ("x{0,2}y", "xxy", "xxxy"),
            ("\\Aa\\z|^b$", "b", "ab"),
            ("]}", "]}", "]"),
        ] {
            let compiled = compile(text, Reach::Whole).unwrap();
            assert!(compiled.is_match(yes) && !compiled.is_match(no), "{text}");
        }
    }
}
