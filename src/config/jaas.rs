//! The text of a JAAS file: sections of login modules with options, as the JDK reads them.
//!
//! ```text
//! Server {
//!     org.apache.zookeeper.server.auth.DigestLoginModule required
//!     user_bob="his password";   // or # no: comments begin with two slashes, or stand between /* and */
//! };
//! ```
//!
//! Errors name what was expected, never a value: values are passwords.
//!
//! Source: `sun.security.provider.ConfigFile`, `java.io.StreamTokenizer`, `sun.security.util.PropertyExpander`, JDK 17.

use crate::model::Secret;
use std::iter::Peekable;
use std::str::Chars;
use zeroize::Zeroizing;

/// A named section.
#[derive(Debug)]
pub struct Section {
    pub name: String,
    /// Counted from 1.
    pub line: u32,
    pub modules: Vec<Module>,
}

/// One login module of a section.
#[derive(Debug)]
pub struct Module {
    /// The name of its Java class.
    pub class: String,
    pub line: u32,
    /// In the order of the file; a later one of the same name has replaced an earlier one.
    pub options: Vec<(String, Secret)>,
}

impl Module {
    /// The value of an option; values of a parsed file are always UTF-8.
    pub fn option(&self, name: &str) -> Option<&str> {
        let (_, value) = self.options.iter().find(|(option, _)| option == name)?;
        std::str::from_utf8(value.reveal()).ok()
    }

    /// Whether an option is `true`, ignoring case.
    pub fn is_true(&self, name: &str, default: bool) -> bool {
        self.option(name).map_or(default, |value| value.eq_ignore_ascii_case("true"))
    }
}

/// Why a text is no JAAS file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what}")]
pub struct JaasError {
    pub line: u32,
    pub what: String,
}

/// Gives the value of a Java system property.
pub type Property<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Reads all sections.
///
/// # Errors
/// The first place where the text departs from the grammar, a property that is not set, or a
/// section name that occurs twice.
pub fn parse(text: &[u8], property: &Property<'_>) -> Result<Vec<Section>, JaasError> {
    let text = Zeroizing::new(String::from_utf8_lossy(text).into_owned());
    let mut parser = Parser { tokens: Tokens::new(&text), property };
    let sections = parser.sections();
    sections.map_err(|error| error.after_unclosed(parser.tokens.unclosed))
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    property: &'a Property<'a>,
}

impl Parser<'_> {
    fn sections(&mut self) -> Result<Vec<Section>, JaasError> {
        let mut sections: Vec<Section> = Vec::new();
        loop {
            let (token, line) = self.tokens.next();
            let name = match token {
                Token::End => return Ok(sections),
                Token::Text(name) => name.to_string(),
                Token::Sign(found) => {
                    return Err(expected("a section's name", &Token::Sign(found), line));
                }
            };
            if sections.iter().any(|section| section.name == name) {
                let what = format!("section \"{name}\" occurs twice; remove one of them");
                return Err(JaasError { line, what });
            }
            let modules = self.modules()?;
            sections.push(Section { name, line, modules });
        }
    }

    /// Reads a section's modules, from its opening brace to the semicolon at its end.
    fn modules(&mut self) -> Result<Vec<Module>, JaasError> {
        self.sign('{')?;
        let mut modules = Vec::new();
        loop {
            let (token, line) = self.tokens.next();
            match token {
                Token::Sign('}') => break,
                Token::Text(class) => modules.push(self.module(class.to_string(), line)?),
                other => return Err(expected("a login module or `}`", &other, line)),
            }
        }
        self.sign(';')?;
        Ok(modules)
    }

    /// From a module's flag to the semicolon at its end.
    fn module(&mut self, class: String, line: u32) -> Result<Module, JaasError> {
        const FLAGS: [&str; 4] = ["required", "requisite", "sufficient", "optional"];
        let (token, at) = self.tokens.next();
        if !matches!(&token, Token::Text(flag) if FLAGS.iter().any(|f| f.eq_ignore_ascii_case(flag)))
        {
            return Err(expected(
                &format!("one of {} after {class}", FLAGS.join(", ")),
                &token,
                at,
            ));
        }
        let mut options: Vec<(String, Secret)> = Vec::new();
        loop {
            let (token, at) = self.tokens.next();
            let name = match token {
                Token::Sign(';') => return Ok(Module { class, line, options }),
                Token::Text(name) => name.to_string(),
                other => return Err(expected("an option or `;`", &other, at)),
            };
            self.sign('=').map_err(|error| {
                // The line of the word: the sign that is missing may belong on another line.
                JaasError { line: at, ..error }.after_value(!options.is_empty())
            })?;
            let (token, at) = self.tokens.next();
            let Token::Text(value) = token else {
                return Err(expected(&format!("a value of {name}"), &token, at));
            };
            let value =
                expand(&value, self.property).map_err(|what| JaasError { line: at, what })?;
            let value = Secret::new(value.as_bytes().to_vec());
            match options.iter_mut().find(|(option, _)| *option == name) {
                Some((_, old)) => *old = value,
                None => options.push((name, value)),
            }
        }
    }

    fn sign(&mut self, wanted: char) -> Result<(), JaasError> {
        match self.tokens.next() {
            (Token::Sign(found), _) if found == wanted => Ok(()),
            (other, line) => Err(expected(&format!("`{wanted}`"), &other, line)),
        }
    }
}

impl JaasError {
    /// An unquoted value may have been taken for several words.
    fn after_value(mut self, has_value_before: bool) -> Self {
        if has_value_before {
            self.what +=
                "; a value with other characters than letters and digits needs quotation marks";
        }
        self
    }

    /// * `unclosed`: line of the last quoted text without a closing mark.
    fn after_unclosed(mut self, unclosed: Option<u32>) -> Self {
        if let Some(line) = unclosed {
            self.line = line;
            self.what = format!("a quotation mark is missing, so after this line: {}", self.what);
        }
        self
    }
}

fn expected(what: &str, found: &Token, line: u32) -> JaasError {
    let found = match found {
        Token::End => "the end of the file".to_owned(),
        Token::Text(_) => "a word".to_owned(),
        Token::Sign(sign) if "{};=,".contains(*sign) => format!("`{sign}`"),
        Token::Sign(_) => "a character that needs quotation marks".to_owned(),
    };
    JaasError { line, what: format!("expected {what}, found {found}") }
}

enum Token {
    End,
    /// A word, or a text in quotation marks.
    Text(Zeroizing<String>),
    /// Any other character.
    Sign(char),
}

/// Splits the text as `StreamTokenizer` does.
struct Tokens<'a> {
    chars: Peekable<Chars<'a>>,
    line: u32,
    /// Line of the last quoted text without a closing mark.
    unclosed: Option<u32>,
    /// Limit on a token's length, from the text's: buffers with passwords are replaced by others
    /// (`push`), and zeroed, never reallocated.
    len_max: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Self { chars: text.chars().peekable(), line: 1, unclosed: None, len_max: text.len() }
    }

    fn read(&mut self) -> Option<char> {
        let read = self.chars.next();
        if read == Some('\n') {
            self.line = self.line.saturating_add(1);
        }
        read
    }

    /// The next token, and its line.
    fn next(&mut self) -> (Token, u32) {
        loop {
            let line = self.line;
            let Some(c) = self.read() else { return (Token::End, line) };
            match c {
                _ if c <= ' ' => {}
                '/' => self.skip_comment(),
                '"' => return (Token::Text(self.quoted()), line),
                _ if is_letter(c) => return (Token::Text(self.word(c)), line),
                _ => return (Token::Sign(c), line),
            }
        }
    }

    /// After a slash. One slash alone begins a comment too, so that a path needs quotation marks.
    fn skip_comment(&mut self) {
        if self.chars.peek() != Some(&'*') {
            while self.chars.next_if(|&c| c != '\n' && c != '\r').is_some() {}
            return;
        }
        self.read();
        let mut before = ' ';
        while let Some(c) = self.read() {
            if before == '*' && c == '/' {
                return;
            }
            before = c;
        }
    }

    fn word(&mut self, first: char) -> Zeroizing<String> {
        let mut word = Zeroizing::new(String::with_capacity(64));
        word.push(first);
        while let Some(c) =
            self.chars.next_if(|&c| is_letter(c) || c.is_ascii_digit() || matches!(c, '.' | '-'))
        {
            self.push(&mut word, c);
        }
        word
    }

    /// After a quotation mark. The end of the line ends the text too.
    fn quoted(&mut self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(64));
        while let Some(c) = self.chars.next_if(|&c| c != '\n' && c != '\r') {
            match c {
                '"' => {
                    self.unclosed = None;
                    return text;
                }
                '\\' => {
                    if let Some(c) = self.escaped() {
                        self.push(&mut text, c);
                    }
                }
                _ => self.push(&mut text, c),
            }
        }
        self.unclosed = Some(self.line);
        text
    }

    /// After a backslash.
    fn escaped(&mut self) -> Option<char> {
        let first = self.read()?;
        let is_octal = |c: &char| ('0'..='7').contains(c);
        if !is_octal(&first) {
            return Some(match first {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                other => other,
            });
        }
        let digits_max = if first <= '3' { 3 } else { 2 };
        let mut code = first.to_digit(8)?;
        for _ in 1..digits_max {
            let Some(digit) = self.chars.next_if(is_octal) else { break };
            code = code * 8 + digit.to_digit(8)?;
        }
        char::from_u32(code)
    }

    /// Appends without leaving a copy in a buffer that was too small.
    fn push(&self, text: &mut Zeroizing<String>, c: char) {
        if text.capacity() < text.len() + c.len_utf8() {
            let room = (text.capacity() * 2).clamp(text.len() + c.len_utf8(), self.len_max + 64);
            let mut larger = Zeroizing::new(String::with_capacity(room));
            larger.push_str(text);
            *text = larger;
        }
        text.push(c);
    }
}

/// A character that can begin a word; digits, dots and hyphens cannot.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '$' | '_' | '*') || '\u{a0}' <= c
}

/// Replaces `${name}` by a property's value and `${/}` by a slash; `${{...}}` stays.
///
/// # Errors
/// A text, if a property is not set, or if nothing is left.
pub fn expand(value: &str, property: &Property<'_>) -> Result<Zeroizing<String>, String> {
    let mut text = Zeroizing::new(String::with_capacity(value.len()));
    let mut rest = value;
    while let Some(at) = rest.find("${") {
        let (before, special) = rest.split_at(at);
        text.push_str(before);
        if special.starts_with("${{") {
            let end = special.find("}}").map_or(special.len(), |end| end + 2);
            text.push_str(&special[..end]);
            rest = &special[end..];
            continue;
        }
        let Some(end) = special.find('}') else {
            rest = special;
            break;
        };
        let name = &special[2..end];
        if name == "/" {
            text.push('/');
        } else {
            let found = property(name);
            let found =
                found.ok_or_else(|| format!("property {name} is not set; add -D{name}="))?;
            text.push_str(&found);
        }
        rest = &special[end + 1..];
    }
    text.push_str(rest);
    if text.is_empty() && !value.is_empty() {
        return Err("properties leave an empty value; set them".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    /// Sections as `name: class option=value ...`.
    fn shown(text: &str) -> Result<Vec<String>, String> {
        let property = |name: &str| (name == "x.y").then(|| "why".to_owned());
        let sections = parse(text.as_bytes(), &property)
            .map_err(|error| format!("{}: {error}", error.line))?;
        let modules = sections.iter().flat_map(|section| {
            section.modules.iter().map(|module| {
                let options = module.options.iter().map(|(name, value)| {
                    format!(" {name}={}", String::from_utf8_lossy(value.reveal()))
                });
                format!("{}: {}{}", section.name, module.class, options.collect::<String>())
            })
        });
        Ok(modules.collect())
    }

    #[test]
    fn sections_are_read_as_javas() {
        for (text, expected) in [
            ("", vec![]),
            (" // nothing\n/* at\n* all */ ", vec![]),
            ("Server{};", vec![]),
            (
                "Server { a.b.C required user_bob=\"it's \\\"his\\\" \\101\\n\"\n;\nD OPTIONAL; };\n",
                vec!["Server: a.b.C user_bob=it's \"his\" A\n", "Server: D"],
            ),
            // The end of a line ends a quoted text.
            ("S { C required a=\"b\n c=d; };", vec!["S: C a=b c=d"]),
            (
                "\"S T\" { C required a=\"${x.y}/${/}${{x}}${z\"; };",
                vec!["S T: C a=why//${{x}}${z"],
            ),
            ("S { C required a=\"\"; };", vec!["S: C a="]),
            ("S { C required a=\u{e9}t\u{e9}-1.$*_; };", vec!["S: C a=\u{e9}t\u{e9}-1.$*_"]),
        ] {
            let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(shown(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_name_line_and_what_was_expected_but_no_value() {
        for (text, expected) in [
            ("\n;", "2: expected a section's name, found `;`"),
            ("S", "1: expected `{`, found the end of the file"),
            (
                "S {\n C maybe",
                "2: expected one of required, requisite, sufficient, optional after C, found a word",
            ),
            ("S { C required a b;", "1: expected `=`, found a word"),
            (
                "S { C required a=b c; };",
                "1: expected `=`, found `;`; a value with other characters than letters and digits needs quotation marks",
            ),
            (
                "S { C required a=b@c; };",
                "1: expected an option or `;`, found a character that needs quotation marks",
            ),
            (
                "S { C required a=5; };",
                "1: expected a value of a, found a character that needs quotation marks",
            ),
            (
                "S { C required a='s3'; };",
                "1: expected a value of a, found a character that needs quotation marks",
            ),
            // A path without quotation marks is a comment, and the next word is the value.
            (
                "S { C required keyTab=/etc/krb5.keytab\n storeKey=true; };",
                "2: expected an option or `;`, found `=`",
            ),
            (
                "S {\n C required\n a=s3 s4\n};",
                "3: expected `=`, found `}`; a value with other characters than letters and digits needs quotation marks",
            ),
            (
                "S {\n C required\n a=\"s3;\n};",
                "3: a quotation mark is missing, so after this line: expected an option or `;`, found `}`",
            ),
            ("S { C required a=s3 }", "1: expected an option or `;`, found `}`"),
            ("S { C required; }", "1: expected `;`, found the end of the file"),
            ("S { };\nS { };", "2: section \"S\" occurs twice; remove one of them"),
            ("S { C required a=\"${p}\"; };", "1: property p is not set; add -Dp="),
        ] {
            assert_eq!(shown(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(parse(b"\xff{};", &none).unwrap()[0].name, "\u{fffd}");
    }

    #[test]
    fn later_option_replaces_an_earlier_one() {
        let sections = parse(b"S { C required useKeyTab=True a=1x a=b; };", &none);
        assert!(sections.is_err(), "a value that begins with a digit needs quotation marks");
        let sections = parse(b"S { C required useKeyTab=True a=x a=b; };", &none).unwrap();
        let module = &sections[0].modules[0];
        assert_eq!((module.option("a"), module.options.len()), (Some("b"), 2));
        assert!(module.is_true("useKeyTab", false) && module.is_true("isInitiator", true));
        assert!(!format!("{module:?}").contains("True"), "values are not shown");
    }
}
