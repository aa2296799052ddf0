//! The address of the client port.

use crate::file;

// rows: C-15
#[test]
fn hosts_are_written_as_java_reads_them() {
    let of = |host: &str| {
        let text = format!("dataDir=/d\nclientPort=2181\nclientPortAddress={host}\n");
        file(&text, None).map(|config| config.client_host).map_err(|error| error.to_string())
    };
    for every in ["[::]", "::", "0:0:0:0:0:0:0:0", "0.0.0.0", "0", "[0::0]", "::ffff:0.0.0.0"] {
        assert_eq!(of(every), Ok(None), "{every}");
    }
    for (host, plain) in [
        ("", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("[::1]", "0:0:0:0:0:0:0:1"),
        ("::%lo", "::%lo"),
        ("[fe80::1%2]", "fe80:0:0:0:0:0:0:1%2"),
        ("Some.Name", "Some.Name"),
    ] {
        assert_eq!(of(host), Ok(Some(plain.to_owned())), "{host}");
    }
    for wrong in ["[::1", "[127.0.0.1]", "[]", "[name]", "["] {
        let error = of(wrong).expect_err(wrong);
        let start = format!("zoo.cfg:3: clientPortAddress={wrong} has ");
        assert!(error.starts_with(&start) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn names_are_not_resolved_to_compare_them() {
    let of = |address: &str, line: &str| {
        let text = format!(
            "dataDir=/d\nclientPort=2181\nclientPortAddress={address}\nserver.1=a:1:2;{line}\n"
        );
        file(&text, Some("1")).map(|config| (config.client_host, config.warnings.len()))
    };
    let some = |host: &str| Some(host.to_owned());
    // The second warning is that of a single server.
    assert_eq!(of("localhost", "127.0.0.1:2181").unwrap(), (some("127.0.0.1"), 2));
    assert_eq!(of("localhost", "2181").unwrap(), (None, 2));
    assert_eq!(of("::1", "[0::1]:2181").unwrap(), (some("0:0:0:0:0:0:0:1"), 1));
    assert_eq!(of("0.0.0.0", "h:2181").unwrap(), (some("h"), 1));
    assert!(of("127.0.0.1", "127.0.0.2:2181").is_err());
    assert!(of("localhost", "localhost:2182").is_err());
}
