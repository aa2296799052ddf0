//! Any text as a configuration: it is accepted, or refused with a message for every problem.
//! Lines after a line `--` are `-D` flags; a line `++` makes the rest positional arguments.

use oxkeeper::config::{Environment, Source, parse, parse_positional};

pub fn target(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Some(arguments) = text.strip_prefix("++\n") {
        let arguments: Vec<String> = arguments.lines().take(4).map(str::to_owned).collect();
        if (2..=4).contains(&arguments.len()) {
            let _ = parse_positional(&arguments, &Environment::new(), &[]);
        }
        return;
    }
    let (file, flags) = text.split_once("\n--\n").unwrap_or((&text, ""));
    let flags: Vec<String> = flags.lines().map(str::to_owned).collect();
    let environment = Environment::from([("SERVER_JVMFLAGS".to_owned(), flags.join(" "))]);
    // Without flags the bytes are taken as they are: a file need not be text.
    let bytes = if flags.is_empty() { input } else { file.as_bytes() };
    let source = Source { name: "zoo.cfg", text: bytes, my_id: None };
    match parse(source, &environment, &flags) {
        Ok(config) => assert!(0 < config.tick_time_ms, "a tick takes time"),
        Err(error) => assert!(!error.to_string().trim().is_empty(), "a refusal has a message"),
    }
}
