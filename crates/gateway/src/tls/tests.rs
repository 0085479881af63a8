use std::env;

use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::advance,
};
use tokio_rustls::TlsConnector;

use super::*;

/// A folder that is gone in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("informer-tls-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A certificate for `localhost` and its key, as files have them.
fn mk_pem() -> (String, String) {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

fn names() -> Vec<String> {
    ["localhost", "127.0.0.1", "::1", "gateway.example.com"].map(str::to_owned).to_vec()
}

/// Connects as a client that trusts this certificate alone and says `ping`; what the server hears, or why it failed.
async fn ping(tls: &Tls, trusted: CertificateDer<'static>, name: &'static str) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut roots = RootCertStore::empty();
    roots.add(trusted).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let client = async {
        let stream = TcpStream::connect(address).await?;
        let mut stream = connector.connect(ServerName::try_from(name).expect("a name"), stream).await?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(HTTP_2));
        stream.write_all(b"ping").await?;
        stream.shutdown().await
    };
    let server = async {
        let (stream, _) = listener.accept().await?;
        let mut heard = String::new();
        tls.acceptor().accept(stream).await?.read_to_string(&mut heard).await?;
        Ok(heard)
    };
    let (told, heard) = tokio::join!(client, server);
    told.and(heard)
}

#[tokio::test]
async fn a_client_that_trusts_the_certificate_of_our_own_can_talk() {
    let tls = Tls::self_signed(&names()).expect("TLS");
    for name in ["localhost", "127.0.0.1", "::1", "gateway.example.com"] {
        assert_eq!(ping(&tls, tls.certificate(), name).await.expect(name), "ping");
    }
    assert!(ping(&tls, tls.certificate(), "other.example.com").await.is_err(), "it has no such name");
    let other = Tls::self_signed(&names()).expect("TLS");
    assert!(ping(&tls, other.certificate(), "localhost").await.is_err(), "nobody vouches for it");
}

#[test]
fn a_name_that_is_none_has_no_certificate() {
    let error = Tls::self_signed(&["gäteway".to_owned()]).err().expect("no name");
    assert!(matches!(error, TlsError::SelfSigned(_)), "{error}");
}

#[test]
fn a_fingerprint_is_32_bytes_in_hexadecimal_with_colons() {
    let tls = Tls::self_signed(&names()).expect("TLS");
    let print = tls.fingerprint();
    let bytes: Vec<_> = print.split(':').collect();
    assert_eq!(bytes.len(), 32);
    assert!(bytes.iter().all(|byte| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok()));
    assert_eq!(print, print.to_uppercase());
    assert_ne!(print, Tls::self_signed(&names()).expect("TLS").fingerprint());
}

#[tokio::test]
async fn certificates_come_from_files() {
    let folder = Folder::new("files");
    let (certificate_pem, key) = mk_pem();
    let both = folder.write("tls.crt", &format!("a word before\n{certificate_pem}"));
    let tls = Tls::from_files(&both, &folder.write("tls.key", &key)).expect("TLS");
    assert_eq!(ping(&tls, tls.certificate(), "localhost").await.expect("a connection"), "ping");
}

#[test]
fn files_that_cannot_be_used_are_told_apart() {
    let folder = Folder::new("errors");
    let (certificate, key) = mk_pem();
    let (_, other_key) = mk_pem();
    let good_certificate = folder.write("good.crt", &certificate);
    let good_key = folder.write("good.key", &key);
    let missing = folder.0.join("missing");
    let error = |certificate: &Path, key: &Path| {
        Tls::from_files(certificate, key).err().expect("an error").to_string()
    };
    for (told, words) in [
        (error(&missing, &good_key), "cannot read"),
        (error(&good_certificate, &missing), "cannot read"),
        (error(&folder.write("empty.crt", ""), &good_key), "has no certificate"),
        (error(&good_key, &good_key), "has no certificate"),
        (error(&good_certificate, &good_certificate), "has no private key"),
        (error(&good_certificate, &folder.write("other.key", &other_key)), "cannot be used"),
        (error(&folder.write("cut.crt", &certificate[..100]), &good_key), "END line is missing"),
        (error(&good_certificate, &folder.write("cut.key", &key[..60])), "END line is missing"),
    ] {
        assert!(told.contains(words), "{told}");
        assert!(told.contains(&*folder.0.to_string_lossy()), "it names the file: {told}");
    }
    for (name, begin) in [
        ("pkcs8.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----"),
        ("old.key", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED"),
    ] {
        let told = error(&good_certificate, &folder.write(name, &format!("{begin}\nAAAA\n")));
        assert!(told.contains("encrypted") && told.contains(name), "{told}");
    }
}

#[test]
fn an_error_shows_nothing_of_a_key() {
    let folder = Folder::new("secret");
    let (certificate, key) = mk_pem();
    let secret = key.lines().nth(1).expect("a line");
    let certificate = folder.write("tls.crt", &certificate);
    for broken in [
        key.replace("-----END", "---END"),
        key.replace('=', "*"),
        key.replacen('M', "*", 1),
        key.replace("KEY-----\n", "KEY"),
    ] {
        if let Err(error) = Tls::from_files(&certificate, &folder.write("tls.key", &broken)) {
            assert!(!format!("{error} {error:?}").contains(&secret[10..20]));
        }
    }
}

/// Writes a file so that it differs from what was there even when the clock of the file system is coarse.
fn rewrite(folder: &Folder, name: &str, content: &str, age: u64) {
    let path = folder.write(name, content);
    let file = fs::File::options().write(true).open(path).expect("a file");
    let time = file.metadata().and_then(|file| file.modified()).expect("a time");
    file.set_modified(time + Duration::from_secs(age)).expect("a time");
}

#[tokio::test(start_paused = true)]
async fn files_that_were_replaced_are_used_within_a_minute() {
    let folder = Folder::new("rotation");
    let (first, second) = (mk_pem(), mk_pem());
    let (certificate_file, key_file) = (folder.write("tls.crt", &first.0), folder.write("tls.key", &first.1));
    let tls = Tls::from_files(&certificate_file, &key_file).expect("TLS");
    let (old, old_print) = (tls.certificate(), tls.fingerprint());
    rewrite(&folder, "tls.crt", &second.0, 1);
    rewrite(&folder, "tls.key", &second.1, 1);
    tls.certificates.now();
    assert_eq!(tls.fingerprint(), old_print, "they are not looked at all the time");
    advance(LOOK_AGAIN).await;
    tls.certificates.now();
    assert_ne!(tls.fingerprint(), old_print);
    assert!(ping(&tls, old, "localhost").await.is_err());
    assert_eq!(ping(&tls, tls.certificate(), "localhost").await.expect("a connection"), "ping");
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_cannot_be_used_leaves_the_old_certificate() {
    let folder = Folder::new("broken");
    let (first, second) = (mk_pem(), mk_pem());
    let (certificate_file, key_file) = (folder.write("tls.crt", &first.0), folder.write("tls.key", &first.1));
    let tls = Tls::from_files(&certificate_file, &key_file).expect("TLS");
    let old = tls.fingerprint();
    let after_a_minute = async || {
        advance(LOOK_AGAIN).await;
        tls.certificates.now();
        tls.fingerprint()
    };
    rewrite(&folder, "tls.crt", &second.0, 1);
    assert_eq!(after_a_minute().await, old, "the key does not fit yet");
    fs::remove_file(&key_file).expect("removed");
    assert_eq!(after_a_minute().await, old, "the key is missing");
    assert_eq!(after_a_minute().await, old);
    rewrite(&folder, "tls.key", &second.1, 2);
    assert_ne!(after_a_minute().await, old, "now both are there");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_our_own_is_replaced_before_it_ends() {
    assert!(REPLACED_AFTER < GOOD_FOR.unsigned_abs());
    let tls = Tls::self_signed(&names()).expect("TLS");
    let first = tls.fingerprint();
    advance(REPLACED_AFTER - Duration::from_secs(1)).await;
    tls.certificates.now();
    assert_eq!(tls.fingerprint(), first);
    advance(LOOK_AGAIN).await;
    tls.certificates.now();
    assert_ne!(tls.fingerprint(), first);
}
