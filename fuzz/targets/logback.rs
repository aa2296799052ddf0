//! Any text as a `logback.xml`: read, or refused with a message; sizes, numbers and what is left out stay bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oxkeeper::config::{Appender, logback};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let outside = |name: &str| (name.len() == 3).then(|| format!("${{{name}x}}"));
    match logback::parse(&text, &outside) {
        Ok(found) => {
            for appender in found.appenders {
                let Appender::File(file) = appender else { continue };
                assert!(!file.path.as_os_str().is_empty());
                assert!(file.rolling.is_none_or(|rolling| rolling.kept <= 21 && 0 < rolling.size_bytes));
            }
        }
        Err(error) => assert!(!error.trim().is_empty(), "a refusal has a message"),
    }
});
