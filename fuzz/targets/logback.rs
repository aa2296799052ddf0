//! Any text as a `logback.xml`: read, or refused with a message; sizes, numbers and what is left out stay bounded.

use oxkeeper::config::{Appender, logback};

pub fn target(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let variable = |name: &str| (name.len() == 3).then(|| format!("${{{name}x}}"));
    // The same text, so that a file includes itself, or is read as properties.
    let file = |name: &str| match name.len() % 3 {
        0 => Err("there is none".to_owned()),
        1 => Ok(text.to_string()),
        _ => Ok(text.replace("configuration", "included")),
    };
    match logback::parse(&text, &logback::Outside { variable: &variable, file: &file }) {
        Ok(found) => {
            for appender in found.appenders {
                let Appender::File(file) = appender else { continue };
                assert!(!file.path.as_os_str().is_empty());
                assert!(
                    file.rolling.is_none_or(|rolling| rolling.kept <= 21 && 0 < rolling.size_bytes)
                );
            }
        }
        Err(error) => assert!(!error.trim().is_empty(), "a refusal has a message"),
    }
}
