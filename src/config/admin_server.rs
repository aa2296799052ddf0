//! Settings of AdminServer, and what it shows of the configuration.

use super::checker::Checker;
use super::parse_properties;
use super::problem::Warning;
use super::property_reader::{INT, Reader};
use super::secrets;
use super::system_properties::{Property, SystemProperties, as_written};
use super::tls::{AdminTls, ClientAuth, TlsSettings};
use super::tls_settings;

/// The HTTP port with commands.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminServer {
    /// `admin.serverAddress`: host name or address to bind; `None` is every address of the machine.
    pub host: Option<String>,
    /// `admin.serverPort`: 0 lets the system choose one.
    pub port: u16,
    /// `admin.commandURL`.
    pub command_url: String,
    /// `admin.idleTimeout`: how long a client may send no request, or take no answer; never 0.
    pub idle_timeout_ms: u32,
    /// `None`: it speaks plain HTTP alone.
    pub tls: Option<AdminTls>,
    /// `admin.snapshot.enabled`, `admin.restore.enabled`.
    pub snapshots: bool,
    pub restores: bool,
    /// `admin.rateLimiterIntervalInMS`: one `snapshot` and one `restore` are carried out in this many milliseconds.
    pub limiter_interval_ms: i64,
    /// `IPAuthenticationProvider.usexforwardedfor`: a proxy's header names the address of scheme `ip`.
    pub trusts_forwarded_for: bool,
    pub shown: ShownConfig,
}

/// What AdminServer shows of the configuration: without secrets.
#[derive(Clone, Debug, Default)]
pub struct ShownConfig {
    /// The text of zoo.cfg.
    pub text: String,
    /// System properties, sorted.
    pub properties: Vec<(String, String)>,
}

/// It repeats what is set, so two configurations that set the same in other words are equal.
impl PartialEq for ShownConfig {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ShownConfig {}

/// `None`: there is none.
///
/// Source: `AdminServerFactory` and `JettyAdminServer`, ZooKeeper 3.9.5.
pub(super) fn take(from: &mut Reader<'_>) -> Option<AdminServer> {
    let off = takes_off(from);
    let port = from.number("zookeeper.admin.serverPort", 0..=65_535, 8080);
    let host = from.text("zookeeper.admin.serverAddress");
    let url = take_url(from, !off);
    let idle_timeout_ms = take_idle_timeout(from, !off);
    let settings = AdminServer {
        host: host.filter(|host| host != "0.0.0.0"),
        port: port as u16,
        command_url: url,
        idle_timeout_ms,
        tls: None,
        snapshots: from.flag("zookeeper.admin.snapshot.enabled", true),
        restores: from.flag("zookeeper.admin.restore.enabled", true),
        limiter_interval_ms: from.number("zookeeper.admin.rateLimiterIntervalInMS", INT, 300_000),
        trusts_forwarded_for: from
            .flag("zookeeper.IPAuthenticationProvider.usexforwardedfor", false),
        shown: ShownConfig::default(),
    };
    Some(settings).filter(|_| !off)
}

/// Whether AdminServer is off; a warning for a word that looks as if it were.
fn takes_off(from: &mut Reader<'_>) -> bool {
    let Some(Property { value, place }) = from.system.take("zookeeper.admin.enableServer") else {
        return false;
    };
    if value != "true" && value != "false" {
        let key = as_written("zookeeper.admin.enableServer", &place);
        let text = format!(
            "{key}={value} counts as true: AdminServer listens, and only the exact text false turns it off; write true or false"
        );
        from.warnings.push(Warning { place, text, used: Some("true".to_owned()) });
    }
    value == "false"
}

/// The path of the commands.
///
/// * `is_on`: whether there is an AdminServer that uses it.
fn take_url(from: &mut Reader<'_>, is_on: bool) -> String {
    let Some(Property { value, place }) = from.system.take("zookeeper.admin.commandURL") else {
        return "/commands".to_owned();
    };
    if is_on && !value.is_empty() && !value.starts_with('/') {
        let key = as_written("zookeeper.admin.commandURL", &place);
        let text = format!(
            "{key}={value} does not begin with a slash, so no path leads to the commands of AdminServer; write /{value}"
        );
        from.warnings.push(Warning::new(place, text));
    }
    value
}

/// As in Java there is no limit if the number is below 1.
///
/// * `is_on`: as for [`take_url`].
fn take_idle_timeout(from: &mut Reader<'_>, is_on: bool) -> u32 {
    const KEY: &str = "zookeeper.admin.idleTimeout";
    let place = from.system.get(KEY).map(|property| property.place.clone());
    let number = from.number(KEY, INT, 30_000);
    if let Some(limit) = u32::try_from(number).ok().filter(|&ms| ms > 0) {
        return limit;
    }
    if let Some(place) = place.filter(|_| is_on) {
        let key = as_written(KEY, &place);
        let text = format!(
            "{key}={number} is below 1, so silent connections stay for ever, and 64 of them keep all others out of AdminServer; write ms, such as 30000"
        );
        from.warnings.push(Warning { place, text, used: Some("no limit".to_owned()) });
    }
    u32::MAX
}

/// TLS of AdminServer; `None` without it, and if a setting was wrong.
///
/// * `quorum`: settings of TLS between servers, if there is any.
///
/// Source: `JettyAdminServer`, ZooKeeper 3.9.5.
pub(super) fn take_tls(
    checker: &mut Checker,
    system: &mut SystemProperties,
    quorum: Option<&TlsSettings>,
) -> Option<AdminTls> {
    let mut flag = |name: &str| {
        let key = format!("zookeeper.admin.{name}");
        let place = system.get(&key).map(|property| property.place.clone());
        let on = Reader::new(system, &mut checker.warnings).flag(&key, false);
        place.filter(|_| on)
    };
    let (forced, unified, needed) =
        (flag("forceHttps"), flag("portUnification"), flag("needClientAuth"));
    if system.get("zookeeper.admin.enableServer").is_some_and(|off| off.value == "false") {
        return None;
    }
    let is_forced = forced.is_some();
    let Some(place) = forced.or(unified) else {
        if let Some(place) = needed {
            let text = "admin.needClientAuth=true asks clients of AdminServer for certificates, and its port has no TLS; set \
                        admin.forceHttps=true";
            checker.problem(&place, text);
        }
        return None;
    };
    // The client is not asked for a certificate unless it needs one.
    let client_auth = if needed.is_some() { ClientAuth::Need } else { ClientAuth::None };
    let settings = tls_settings::take_for_admin(checker, system, quorum, client_auth, &place)?;
    Some(AdminTls { settings, is_forced })
}

impl ShownConfig {
    /// * `system`: before its properties are taken.
    pub(super) fn of(system: &SystemProperties) -> Self {
        let properties = system.all().into_iter().map(|(name, property)| {
            let value = if secrets::is_secret(&name) { HIDDEN.to_owned() } else { property.value };
            (name, value)
        });
        Self { text: String::new(), properties: properties.collect() }
    }

    /// * `text`: the file.
    pub(super) fn set_text(&mut self, text: &[u8]) {
        self.text = without_secrets(&String::from_utf8_lossy(text));
    }
}

/// What stands for a secret.
const HIDDEN: &str = "***";

/// The text of a properties file with [`HIDDEN`] in place of each value that may be a secret, in comments too.
fn without_secrets(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(first) = lines.next() {
        let bare = first.trim_start();
        let is_comment = bare.starts_with(['#', '!']);
        let mut line = first.to_owned();
        while !is_comment && goes_on(&line) {
            let Some(next) = lines.next() else { break };
            line.push_str(next);
        }
        let setting = line.trim_start().trim_start_matches(['#', '!']);
        match parse_properties(setting.as_bytes()) {
            Ok(entries) => match entries.keys().find(|key| secrets::is_secret(key)) {
                Some(key) => {
                    let mark = if is_comment { "#" } else { "" };
                    shown.push_str(&format!("{mark}{key}={HIDDEN}\n"));
                }
                None => shown.push_str(&line),
            },
            // No key is known, so the value is not shown either.
            Err(_) => shown.push_str(&format!("# {HIDDEN}\n")),
        }
    }
    shown
}

/// Whether a line of a properties file goes on in the next one.
fn goes_on(line: &str) -> bool {
    let line = line.trim_end_matches(['\n', '\r']);
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Source, parse};

    // rows: A-18 A-32
    #[test]
    fn secrets_are_not_shown() {
        let text = "a=1\n#old.password=x1\nssl.keyStore.password = x2\nssl.trustStore.pass\\\n  word:x3\n\
            \\u0070assword x4\nssl.keyStore.passwordPath=/p\nlast=secret\\ value\nmy.secret=\\\n  x5";
        let shown = without_secrets(text);
        let expected = "a=1\n#old.password=***\nssl.keyStore.password=***\nssl.trustStore.password=***\n\
            password=***\nssl.keyStore.passwordPath=/p\nlast=secret\\ value\nmy.secret=***\n";
        assert_eq!(shown, expected);
    }

    // rows: C-230 C-231 C-232 C-233 C-234 C-239 C-240 C-241
    #[test]
    fn admin_server_is_on_unless_it_is_off_by_its_exact_word() {
        let of = |lines: &str| {
            let text = format!("dataDir=/d\nclientPort=2181\n{lines}\n");
            let source = Source { name: "z", text: text.as_bytes(), my_id: None };
            parse(source, &Environment::new(), &[]).unwrap()
        };
        let shown = of("").admin.unwrap().shown;
        assert!(shown.text.ends_with("clientPort=2181\n\n"), "{shown:?}");
        let plain = of("").admin.unwrap();
        let defaults = AdminServer {
            host: None,
            port: 8080,
            command_url: "/commands".to_owned(),
            idle_timeout_ms: 30_000,
            tls: None,
            snapshots: true,
            restores: true,
            limiter_interval_ms: 300_000,
            trusts_forwarded_for: false,
            shown,
        };
        assert_eq!(plain, defaults);
        assert_eq!(of("admin.enableServer=false").admin, None);
        for on in ["False", "no", "true", ""] {
            assert!(of(&format!("admin.enableServer={on}")).admin.is_some(), "{on}");
        }
        let odd = of("admin.serverPort=x\nadmin.idleTimeout=-1");
        assert_eq!(odd.admin.unwrap().port, 8080);
        assert!(format!("{:?}", odd.warnings).contains("admin.serverPort"));
        let warned = |lines: &str| -> Vec<String> {
            of(lines).warnings.iter().map(ToString::to_string).collect()
        };
        for (odd, text) in [
            ("admin.enableServer=no", "z:3: admin.enableServer=no counts as true"),
            ("admin.enableServer=False", "z:3: admin.enableServer=False counts as true"),
            ("admin.commandURL=c", "z:3: admin.commandURL=c does not begin with a slash"),
            ("admin.idleTimeout=-1", "z:3: admin.idleTimeout=-1 is below 1"),
            ("admin.idleTimeout=0", "z:3: admin.idleTimeout=0 is below 1"),
        ] {
            let found = warned(odd);
            assert!(found.len() == 1 && found[0].starts_with(text), "{found:?}");
        }
        let off = "admin.enableServer=false\nadmin.commandURL=c\nadmin.idleTimeout=-1";
        assert_eq!(warned(off), [""; 0]);
        assert_eq!(warned("admin.enableServer=true\nadmin.commandURL=/c"), [""; 0]);
        let other = of("admin.serverAddress=127.0.0.1\nadmin.serverPort=9\nadmin.commandURL=/c");
        let other = other.admin.unwrap();
        assert_eq!(
            (other.host.as_deref(), other.port, &*other.command_url),
            (Some("127.0.0.1"), 9, "/c")
        );
    }

    #[test]
    fn probes_are_on_until_their_flag_is_false() {
        let of = |lines: &str| {
            let text = format!("dataDir=/d\nclientPort=2181\n{lines}\n");
            let source = Source { name: "z", text: text.as_bytes(), my_id: None };
            parse(source, &Environment::new(), &[]).unwrap()
        };
        assert!(of("").probes && of("admin.enableServer=false").probes);
        assert!(!of("oxkeeper.admin.probes=false").probes);
        let off = of("admin.enableServer=false\noxkeeper.admin.probes=false");
        assert!(!off.probes && off.warnings.is_empty(), "{:?}", off.warnings);
    }

    fn checked(lines: &str) -> Result<Option<AdminTls>, String> {
        let text = format!("dataDir=/d\nclientPort=2181\n{lines}\n");
        let source = Source { name: "z", text: text.as_bytes(), my_id: None };
        let config = parse(source, &Environment::new(), &[]).map_err(|error| error.to_string())?;
        Ok(config.admin.and_then(|admin| admin.tls))
    }

    // rows: C-236 C-237 C-238 A-08
    #[test]
    fn https_has_the_stores_of_connections_between_servers() {
        let stores = "ssl.quorum.keyStore.location=/k.jks\nssl.quorum.trustStore.location=/t.jks\nssl.quorum.protocol=TLSv1.2";
        assert_eq!(checked(stores).unwrap(), None);
        let forced =
            checked(&format!("admin.forceHttps=true\nadmin.portUnification=true\n{stores}"));
        let forced = forced.unwrap().unwrap();
        assert!(forced.is_forced, "it wins");
        assert_eq!(forced.settings.key_store.unwrap().path, std::path::Path::new("/k.jks"));
        assert_eq!(forced.settings.client_auth, ClientAuth::None);
        assert_eq!(forced.settings.versions.len(), 2, "the stores alone are shared");
        let unified = format!("admin.portUnification=true\nadmin.needClientAuth=true\n{stores}");
        let unified = checked(&unified).unwrap().unwrap();
        assert_eq!((unified.is_forced, unified.settings.client_auth), (false, ClientAuth::Need));
        for (wrong, what) in [
            ("admin.needClientAuth=true", "set admin.forceHttps=true"),
            ("admin.forceHttps=true", "set ssl.quorum.keyStore.location"),
            ("admin.portUnification=true", "set ssl.quorum.keyStore.location"),
            (
                "admin.forceHttps=true\nadmin.needClientAuth=true\nssl.quorum.keyStore.location=/k",
                "set ssl.quorum.trustStore.location",
            ),
        ] {
            let error = checked(wrong).unwrap_err();
            assert!(error.contains(what), "{error}");
            assert_eq!(checked(&format!("admin.enableServer=false\n{wrong}")).unwrap(), None);
        }
        let without_trust = checked("admin.forceHttps=true\nssl.quorum.keyStore.location=/k");
        assert!(without_trust.unwrap().is_some(), "nobody is asked for a certificate");
    }
}
