//! The elements of a `logback.xml`, and its variables.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;
use std::collections::BTreeMap;

/// More elements within each other than any configuration has.
const DEPTH_MAX: usize = 64;
/// A variable may name another one, and so on.
const VARIABLES_MAX: usize = 16;
/// The longest value that variables may make.
const VALUE_MAX: usize = 64 * 1024;

/// One element.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Element {
    /// In lower case, as logback compares names without regard to case.
    pub name: String,
    pub attributes: Vec<(String, String)>,
    /// Its own text, without that of its children.
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn open(start: &BytesStart<'_>) -> Result<Self, String> {
        let mut this = Self { name: start.name().0.to_ascii_lowercase(), ..Self::default() };
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = attribute.normalized_value(XmlVersion::default());
            let value = value.map_err(|error| error.to_string())?;
            this.attributes.push((attribute.key.0.to_owned(), value.into_owned()));
        }
        Ok(this)
    }
}

/// Reads a whole file.
///
/// * `name`: of its outermost element.
///
/// # Errors
/// What is wrong, with its line.
pub(super) fn read(text: &str, name: &str) -> Result<Element, String> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    let ended = loop {
        let event = match reader.read_event() {
            Ok(Event::Eof) => break Ok(()),
            Ok(event) => event,
            Err(error) => break Err(error.to_string()),
        };
        if let Err(error) = take(&event, &mut open, &mut root) {
            break Err(error);
        }
    };
    let ended = match (ended, open.last()) {
        (Ok(()), Some(element)) => Err(format!("<{}> has no end", element.name)),
        (ended, _) => ended,
    };
    if let Err(error) = ended {
        let at = usize::try_from(reader.buffer_position().max(reader.error_position()));
        let before = text.as_bytes().get(..at.unwrap_or(usize::MAX)).unwrap_or(text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        return Err(format!("line {line}: {error}"));
    }
    match root {
        Some(root) if root.name == name => Ok(root),
        Some(root) => Err(format!("<{}> stands where <{name}> has to", root.name)),
        None => Err("it has no element".to_owned()),
    }
}

/// Adds what an event brings to the elements that are open.
fn take(
    event: &Event<'_>,
    open: &mut Vec<Element>,
    root: &mut Option<Element>,
) -> Result<(), String> {
    let text = match event {
        Event::Start(_) if open.len() == DEPTH_MAX => {
            return Err(format!("more than {DEPTH_MAX} elements within each other"));
        }
        Event::Start(start) => {
            open.push(Element::open(start)?);
            return Ok(());
        }
        Event::Empty(start) => return close(Element::open(start)?, open, root),
        Event::End(_) => {
            return open.pop().map_or(Ok(()), |element| close(element, open, root));
        }
        Event::Text(text) => text.xml10_content().into_owned(),
        Event::CData(text) => text.xml10_content().into_owned(),
        Event::GeneralRef(name) => referred(name)?,
        Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Eof => {
            return Ok(());
        }
    };
    match open.last_mut() {
        Some(element) => element.text.push_str(&text),
        None if text.trim().is_empty() => {}
        None => return Err("text outside of all elements".to_owned()),
    }
    Ok(())
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) -> Result<(), String> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_none() => *root = Some(element),
        None => return Err(format!("<{}> is a second root", element.name)),
    }
    Ok(())
}

/// What `&name;` stands for.
fn referred(name: &BytesRef<'_>) -> Result<String, String> {
    match name.resolve_char_ref().map_err(|error| error.to_string())? {
        Some(character) => Ok(character.to_string()),
        None => resolve_predefined_entity(name)
            .map(str::to_owned)
            .ok_or_else(|| format!("&{};: no such entity", &**name)),
    }
}

/// The variables that stand in a file, and those outside.
pub(super) struct Variables<'o> {
    defined: BTreeMap<String, String>,
    outside: &'o dyn Fn(&str) -> Option<String>,
}

impl<'o> Variables<'o> {
    pub fn new(outside: &'o dyn Fn(&str) -> Option<String>) -> Self {
        Self { defined: BTreeMap::new(), outside }
    }

    /// A definition in the file wins over those outside, system properties included.
    ///
    /// Source: `NodeToStringTransformer.lookupKey`, logback 1.3.15.
    pub fn define(&mut self, name: &str, value: String) {
        self.defined.insert(name.to_owned(), value);
    }

    /// Puts values in place of `${name}` and `${name:-default}`.
    ///
    /// # Errors
    /// A brace has no end, a variable means itself, or the value is too long.
    pub fn substitute(&self, text: &str) -> Result<String, String> {
        let mut value = String::new();
        self.put(&mut value, text, VARIABLES_MAX)?;
        Ok(value)
    }

    fn put(&self, value: &mut String, text: &str, depth: usize) -> Result<(), String> {
        let depth = depth.checked_sub(1).ok_or("a variable means itself")?;
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            value.push_str(&rest[..start]);
            let (inside, after) = rest[start + 2..]
                .split_at_checked(end_of_variable(&rest[start + 2..])?)
                .ok_or("a variable has no end")?;
            let (name, default) = match split_default(inside) {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let mut key = String::new();
            self.put(&mut key, name, depth)?;
            let known = self.defined.get(&key).cloned().or_else(|| (self.outside)(&key));
            match (known, default) {
                (Some(known), _) => self.put(value, &known, depth)?,
                (None, Some(default)) => self.put(value, default, depth)?,
                (None, None) => value.push_str(&format!("{key}_IS_UNDEFINED")),
            }
            if VALUE_MAX < value.len() {
                return Err("a value is too long".to_owned());
            }
            rest = &after[1..];
        }
        value.push_str(rest);
        Ok(())
    }
}

/// Where the brace is that ends a variable, whose name or default may have variables of their own.
fn end_of_variable(inside: &str) -> Result<usize, String> {
    let (mut depth, mut before) = (0_usize, ' ');
    for (at, c) in inside.char_indices() {
        match c {
            '{' if before == '$' => depth += 1,
            '}' if depth == 0 => return Ok(at),
            '}' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    Err("`${` has no `}`".to_owned())
}

/// Name and default, at the first `:-` that is in no variable of the name.
fn split_default(inside: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && inside[at..].starts_with(":-") => {
                return Some((&inside[..at], &inside[at + 2..]));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_with_attributes_text_and_entities() {
        let root = read(
            "<?xml version='1.0'?><!-- c --><Configuration scan='true'>\n<A b='1&amp;2'>x &lt;&#65; <![CDATA[<y>]]></A><c/></Configuration>\n",
            "configuration",
        );
        let root = root.unwrap();
        assert_eq!((root.name.as_str(), root.attribute("SCAN")), ("configuration", Some("true")));
        let [a, c] = root.children.as_slice() else { panic!("{root:?}") };
        assert_eq!((a.attribute("b"), a.text.as_str()), (Some("1&2"), "x <A <y>"));
        assert_eq!(c.name, "c");
    }

    #[test]
    fn malformed_files_are_reported_with_their_line() {
        let error = |text: &str| read(text, "configuration").unwrap_err();
        assert_eq!(error(""), "it has no element");
        assert_eq!(error("<a/>"), "<a> stands where <configuration> has to");
        assert_eq!(error("<configuration>\n<a>"), "line 2: <a> has no end");
        assert_eq!(error("<configuration>\n&x;</configuration>"), "line 2: &x;: no such entity");
        assert!(error("<configuration>\n\n</b>").starts_with("line 3: "));
        assert!(error("<configuration/><configuration/>").contains("second root"));
        assert!(error("<configuration a='1' a='2'/>").starts_with("line 1: "));
        assert!(error("x<configuration/>").contains("outside"));
        assert!(error(&"<configuration>".repeat(100_000)).contains("within each other"));
    }

    #[test]
    fn variables_have_defaults_and_may_name_each_other() {
        let outside = |name: &str| match name {
            "home" => Some("/h".to_owned()),
            "loop" => Some("${loop}".to_owned()),
            "dir" => Some("/outside".to_owned()),
            _ => None,
        };
        let mut variables = Variables::new(&outside);
        variables.define("dir", "/logs".to_owned());
        variables.define("which", "dir".to_owned());
        let of = |text: &str| variables.substitute(text);
        assert_eq!(of("${dir}/${file:-a.log}"), Ok("/logs/a.log".to_owned()));
        assert_eq!(of("${no:-${home:-x}}/${${which}}"), Ok("/h//logs".to_owned()));
        assert_eq!(of("${no} $x {y}"), Ok("no_IS_UNDEFINED $x {y}".to_owned()));
        assert!(of("${loop}").is_err() && of("${open").is_err());
        let long = "x".repeat(VALUE_MAX);
        variables.define("long", long);
        assert!(variables.substitute("${long}x${long}").is_err());
    }
}
