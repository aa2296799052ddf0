//! The texts of the dynamic files, and the static file that names one.

use oxkeeper::config::dynamic::{
    BACKUP, NEXT, beside, decided, earlier_proposed, is_beside, path_of, proposed, static_naming,
    version_in,
};
use oxkeeper::config::{Entry, parse_properties};
use oxkeeper::model::View;
use std::collections::BTreeMap;
use std::path::Path;

// rows: D-08 D-09
#[test]
fn files_are_named_by_their_version() {
    let path = |version| path_of(Path::new("/c/zoo.cfg"), version).display().to_string();
    assert_eq!(path(0x1_0000_0003), "/c/zoo.cfg.dynamic.100000003");
    assert_eq!(path(0), "/c/zoo.cfg.dynamic.0");
    assert_eq!(beside(Path::new("/c/zoo.cfg"), NEXT), Path::new("/c/zoo.cfg.dynamic.next"));
    assert_eq!(beside(Path::new("/c/zoo.cfg"), BACKUP), Path::new("/c/zoo.cfg.bak"));
    for (path, version) in [
        ("zoo.cfg.dynamic.100000003", Some(0x1_0000_0003)),
        ("zoo.cfg.dynamic.0", Some(0)),
        ("zoo.cfg.dynamic.FF", Some(0xff)),
        ("zoo.cfg.dynamic", None),
        ("zoo.cfg.dynamic.next", None),
        ("/etc.d/members", None),
        ("members", None),
        ("members.", None),
    ] {
        assert_eq!(version_in(path), version, "{path}");
    }
}

// rows: D-08 D-09
#[test]
fn lines_are_sorted_as_text() {
    let text = "server.2=b:1:2\nserver.10=c:1:2:observer;2181\nserver.1=a:1:2\n\
        group.1=1:2\nweight.2=3\nversion=1f";
    let view = View::parse(text).unwrap();
    let members = "group.1=1:2\nserver.10=c:1:2:observer;0.0.0.0:2181\n\
        server.1=a:1:2:participant\nserver.2=b:1:2:participant\n";
    assert_eq!(decided(&view), format!("{members}weight.1=1\nweight.2=3"));
    let text = proposed(std::slice::from_ref(&view), None);
    assert_eq!(text, format!("{members}version=1f\nweight.1=1\nweight.2=3"));
    assert_eq!(View::parse(&text), Ok(view));
}

// rows: D-09
#[test]
fn earlier_proposals_stand_in_comments_that_a_parser_of_properties_passes_over() {
    let view = |version: i64| View {
        version,
        ..View::parse("server.1=a:1:2\nserver.2=b:1:2\ngroup.1=1:2\nweight.2=3").unwrap()
    };
    let views = [view(1), view(2), view(3)];
    let text = proposed(&views, None);
    assert_eq!(View::parse(&text), Ok(view(3)), "what Java reads");
    assert_eq!(earlier_proposed(&text), Ok(views[..2].to_vec()));
    assert_eq!(earlier_proposed(&proposed(&views[..1], None)), Ok(vec![]));
    assert_eq!(earlier_proposed("# a comment\nserver.1=a:1:2"), Ok(vec![]), "by an operator");

    let operators =
        View::parse("server.1=a:1:2:participant;2181\nserver.2=b:1:2:observer").unwrap();
    let text = proposed(&views, Some(&operators));
    assert_eq!(earlier_proposed(&text), Ok(views[..2].to_vec()));
    assert!(is_beside(&text, &operators) && !is_beside(&text, &views[0]));
    assert!(is_beside(&proposed(&views[..1], Some(&operators)), &operators));
    assert!(!is_beside(&proposed(&views, None), &operators), "by Java, or beside a dynamic file");
    assert!(earlier_proposed("#earlier\n# server.1=a").is_err());
}

#[track_caller]
fn rewritten(text: &str, has_client: bool, expected: &str) {
    let new = static_naming(text.as_bytes(), "/c/dyn.1", has_client).unwrap();
    let new = String::from_utf8(new).unwrap();
    assert_eq!(new, expected);
    // Once more, and nothing changes.
    let again = static_naming(new.as_bytes(), "/c/dyn.1", has_client).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), expected);
    let entries = |text: &str| parse_properties(text.as_bytes()).unwrap();
    let (old, new) = (entries(text), entries(&new));
    let values = |entries: &BTreeMap<String, Entry>, key: &str| {
        entries.get(key).map(|entry| entry.value.clone())
    };
    assert_eq!(values(&new, "dynamicConfigFile").as_deref(), Some("/c/dyn.1"));
    for key in ["tickTime", "dataDir", "clientPortListenBacklog"] {
        assert_eq!(values(&old, key), values(&new, key), "{key}");
    }
}

// rows: D-11
#[test]
fn the_static_file_keeps_what_is_not_about_members() {
    let text = "# ours\ntickTime=2000\n\nserver.1=a:1:2;2181\nserver.2 = \\\n  b:1:2\npeerType=observer\n\
        group.1=1:2\nweight.1=2\nclientPort=2181\nclientPortAddress=h\nclientPortListenBacklog=7\n\
        dynamicConfigFile=/old\n# end\ndataDir=/d";
    let head = "# ours\ntickTime=2000\n\n";
    let tail = "clientPortListenBacklog=7\n# end\ndataDir=/d\ndynamicConfigFile=/c/dyn.1\n";
    rewritten(text, true, &format!("{head}{tail}"));
    let client = "clientPort=2181\nclientPortAddress=h\n";
    rewritten(text, false, &format!("{head}{client}{tail}"));
    rewritten("", false, "dynamicConfigFile=/c/dyn.1\n");
    rewritten("tickTime=1\\", false, "tickTime=1\\\n\ndynamicConfigFile=/c/dyn.1\n");
    rewritten(
        "server.1=a:1:2\r\ntickTime=1\r\n",
        false,
        "tickTime=1\r\ndynamicConfigFile=/c/dyn.1\n",
    );
}

#[test]
fn odd_paths_are_read_back() {
    let path = "/c ü\u{1f600}\\x/dyn.1";
    let text = static_naming(b"a=1\n", path, false).unwrap();
    assert_eq!(parse_properties(&text).unwrap()["dynamicConfigFile"].value, path);
}

proptest::proptest! {
    /// Whatever is in the file, continuations of nothing included: every other entry is read as before.
    #[test]
    fn kept_lines_keep_their_meaning(text in "(server\\.1|weight|a|\\\\|=|:| |#|\\r|\\n){0,30}") {
        let old = parse_properties(text.as_bytes()).unwrap();
        let new = static_naming(text.as_bytes(), "/c/dyn.1", false).unwrap();
        let new = parse_properties(&new).unwrap();
        // A backslash at the very end is an entry without a key there, and none in front of a line.
        let is_one = |entry: &(&String, &String)| !entry.0.is_empty();
        let goes = |key: &str| ["server.", "weight"].iter().any(|start| key.trim().starts_with(start));
        let kept = old.iter().filter(|(key, _)| !goes(key));
        let mut expected: Vec<_> = kept.map(|(key, entry)| (key, &entry.value)).filter(is_one).collect();
        let (key, path) = ("dynamicConfigFile".to_owned(), "/c/dyn.1".to_owned());
        expected.push((&key, &path));
        expected.sort();
        let found: Vec<_> = new.iter().map(|(key, entry)| (key, &entry.value)).filter(is_one).collect();
        proptest::prop_assert_eq!(found, expected, "{:?}", text);
    }
}
