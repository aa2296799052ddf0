//! Any text as a `logback.xml`: read, or refused with a message; sizes, numbers and what is left out stay bounded.

use oxkeeper::config::{Appender, logback};

pub fn target(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let outside = |name: &str| (name.len() == 3).then(|| format!("${{{name}x}}"));
    match logback::parse(&text, &outside) {
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
