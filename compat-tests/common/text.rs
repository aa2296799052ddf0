//! The tokens of a script line: names, numbers and quoted bytes. Printed values parse back to the same value.

use std::fmt::Write;
use std::str::FromStr;

/// A string or buffer of a request: `None` is null. Bytes, since scripts carry invalid UTF-8 too.
pub type Text = Option<Vec<u8>>;

/// Quotes bytes: printable ASCII as it is, all else as `\xNN`.
pub fn quote(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(byte as char);
            }
            0x20..0x7F => out.push(byte as char),
            _ => write!(out, "\\x{byte:02x}").expect("a string takes all that is written"),
        }
    }
    out.push('"');
    out
}

/// Quoted bytes, or `null`.
pub fn text(value: Option<&[u8]>) -> String {
    value.map_or_else(|| "null".into(), quote)
}

/// `[a, b]`, or `null`.
pub fn list<T>(items: Option<&[T]>, item: impl Fn(&T) -> String) -> String {
    let Some(items) = items else { return "null".into() };
    format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", "))
}

/// Reads a line from left to right.
pub struct Lexer<'a> {
    rest: &'a str,
}

type Parsed<T> = Result<T, String>;

impl<'a> Lexer<'a> {
    pub fn new(line: &'a str) -> Self {
        Self { rest: line.trim() }
    }

    pub fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes `token` if it comes next.
    pub fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    pub fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(format!("`{token}` expected at `{}`", self.rest)) }
    }

    /// Letters, digits, `-` and `_`.
    pub fn word(&mut self) -> Parsed<&'a str> {
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let len = self.rest.find(|c| !inside(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        if word.is_empty() {
            return Err(format!("word expected at `{}`", self.rest));
        }
        self.rest = rest.trim_start();
        Ok(word)
    }

    pub fn value<T: FromStr>(&mut self) -> Parsed<T> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("`{word}` is not a value of this field"))
    }

    /// `name=value`.
    pub fn field<T: FromStr>(&mut self, name: &str) -> Parsed<T> {
        self.name(name)?;
        self.value()
    }

    pub fn name(&mut self, name: &str) -> Parsed<()> {
        self.expect(name)?;
        self.expect("=")
    }

    pub fn text(&mut self) -> Parsed<Text> {
        if self.eat("null") { Ok(None) } else { self.quoted().map(Some) }
    }

    pub fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Option<Vec<T>>> {
        if self.eat("null") {
            return Ok(None);
        }
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.eat("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(item(self)?);
        }
        Ok(Some(items))
    }

    pub fn quoted(&mut self) -> Parsed<Vec<u8>> {
        let bad = || format!("quoted bytes expected at `{}`", self.rest);
        let inner = self.rest.strip_prefix('"').ok_or_else(bad)?.as_bytes();
        let (mut bytes, mut at) = (Vec::new(), 0);
        loop {
            match inner.get(at).ok_or_else(bad)? {
                b'"' => break,
                b'\\' if inner.get(at + 1) == Some(&b'x') => {
                    let hex = inner.get(at + 2..at + 4).and_then(|hex| str::from_utf8(hex).ok());
                    let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
                    bytes.push(byte.ok_or_else(bad)?);
                    at += 4;
                }
                b'\\' => {
                    bytes.push(*inner.get(at + 1).ok_or_else(bad)?);
                    at += 2;
                }
                byte => {
                    bytes.push(*byte);
                    at += 1;
                }
            }
        }
        self.rest = self.rest[at + 2..].trim_start();
        Ok(bytes)
    }
}
