//! Certificates: from files, which may change while the gateway runs, or one of its own.
//!
//! In: two PEM files, or the names of this server. Out: what accepts TLS connections. Files are looked at again at most
//! once a minute, when somebody connects; what cannot be read leaves the old certificate in place. A key that was made
//! here is never written anywhere.

use std::{
    fmt::{self, Write},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};
use ring::digest;
use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring::default_provider},
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// What HTTP/2 is called when the two sides agree on it.
pub(crate) const HTTP_2: &[u8] = b"h2";

/// How often files are looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How long a certificate of our own is good.
const GOOD_FOR: SignedDuration = SignedDuration::from_hours(90 * 24);

/// When a certificate of our own is replaced.
const REPLACED_AFTER: Duration = Duration::from_secs(60 * 24 * 3600);

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is broken.
    #[error("{} is not a PEM file: {why}", path.display())]
    NotPem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The wrong file, most likely.
    #[error("{} has no certificate: it must have a line -----BEGIN CERTIFICATE-----", .0.display())]
    NoCertificate(PathBuf),
    /// The wrong file, most likely.
    #[error("{} has no private key: it must have a line like -----BEGIN PRIVATE KEY-----", .0.display())]
    NoKey(PathBuf),
    /// There is nobody to ask for the password.
    #[error("the private key in {} is encrypted: decrypt it first, for example with `openssl pkey`", .0.display())]
    EncryptedKey(PathBuf),
    /// The two do not belong together, or are of a sort that is not known.
    #[error("the certificate in {} and the key in {} cannot be used: {source}", certificate.display(), key.display())]
    Unusable {
        /// The file with the certificate.
        certificate: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// A certificate of our own cannot be made, for a name that is none perhaps.
    #[error("cannot make a certificate: {0}")]
    SelfSigned(#[source] rcgen::Error),
    /// TLS itself cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Setup(#[source] rustls::Error),
}

/// TLS of a server. It is cheap to clone (an `Arc`).
///
/// ```
/// use informer_gateway::Tls;
///
/// let tls = Tls::self_signed(&["localhost".to_owned(), "127.0.0.1".to_owned()])?;
/// println!("fingerprint {}", tls.fingerprint());
/// # Ok::<(), informer_gateway::TlsError>(())
/// ```
#[derive(Clone)]
pub struct Tls {
    certificates: Arc<Certificates>,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// With a certificate, and those that vouch for it, from one PEM file and its key from another.
    pub fn from_files(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::new(Source::Files { certificate: certificate.to_owned(), key: key.to_owned() })
    }

    /// With a certificate that is made now for these names and addresses, and vouches for itself.
    pub fn self_signed(names: &[String]) -> Result<Self, TlsError> {
        Self::new(Source::Own(names.to_vec()))
    }

    fn new(source: Source) -> Result<Self, TlsError> {
        let provider = Arc::new(default_provider());
        let certificates = Arc::new(Certificates::new(source, Arc::clone(&provider))?);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(certificates.clone());
        config.alpn_protocols = vec![HTTP_2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self { certificates, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// The SHA-256 fingerprint of the certificate, as browsers and openssl show it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.certificates.lock().key)
    }

    /// The certificate itself, for a client that is to trust it.
    #[cfg(test)]
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificates.lock().key.cert.first().expect("a certificate").clone()
    }

    /// What makes connections of TCP into connections of TLS.
    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

/// Where certificates come from.
#[derive(Debug)]
enum Source {
    Files { certificate: PathBuf, key: PathBuf },
    Own(Vec<String>),
}

/// The certificate that is shown now.
struct Certificates {
    source: Source,
    provider: Arc<CryptoProvider>,
    current: Mutex<Current>,
}

struct Current {
    key: Arc<CertifiedKey>,
    /// What the files looked like when they were read.
    read: Option<Stamp>,
    made: Instant,
    looked: Instant,
    /// What they looked like when they could not be used, which is said once.
    failed: Option<Option<Stamp>>,
}

/// Tells a file from what it was before: when each of the two was written, and how long it is.
type Stamp = [(SystemTime, u64); 2];

impl Certificates {
    fn new(source: Source, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        // First the stamp: what is written in between is read again.
        let read = source.stamp();
        let key = Arc::new(source.read(&provider)?);
        let now = Instant::now();
        let current = Mutex::new(Current { key, read, made: now, looked: now, failed: None });
        Ok(Self { source, provider, current })
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The certificate to show now. Reading two small files once a minute is no reason for another thread.
    fn now(&self) -> Arc<CertifiedKey> {
        let mut current = self.lock();
        let now = Instant::now();
        if now.duration_since(current.looked) >= LOOK_AGAIN {
            current.looked = now;
            let stamp = self.source.stamp();
            let due = match self.source {
                Source::Files { .. } => stamp != current.read,
                Source::Own(_) => now.duration_since(current.made) >= REPLACED_AFTER,
            };
            match due.then(|| self.source.read(&self.provider)) {
                Some(Ok(key)) => {
                    let fingerprint = fingerprint(&key);
                    tracing::info!(fingerprint, "a new certificate is in use");
                    *current =
                        Current { key: Arc::new(key), read: stamp, made: now, looked: now, failed: None };
                }
                Some(Err(error)) if current.failed != Some(stamp) => {
                    tracing::warn!("the old certificate stays in use: {error}");
                    current.failed = Some(stamp);
                }
                Some(Err(_)) | None => {}
            }
        }
        Arc::clone(&current.key)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

/// Without the key.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Certificates").field(&self.source).finish()
    }
}

impl Source {
    fn stamp(&self) -> Option<Stamp> {
        let Self::Files { certificate, key } = self else { return None };
        let of = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some((file.modified().ok()?, file.len()))
        };
        Some([of(certificate)?, of(key)?])
    }

    fn read(&self, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
        match self {
            Self::Files { certificate, key } => {
                let chain = read_chain(certificate)?;
                CertifiedKey::from_der(chain, read_key(key)?, provider).map_err(|source| TlsError::Unusable {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    source,
                })
            }
            Self::Own(names) => {
                let (certificate, key) = make(names).map_err(TlsError::SelfSigned)?;
                CertifiedKey::from_der(vec![certificate], key, provider).map_err(TlsError::Setup)
            }
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// What is wrong with a file, without anything that stands in it: it may be a key.
fn not_pem(path: &Path, error: &pem::Error) -> TlsError {
    let why = match error {
        pem::Error::MissingSectionEnd { .. } => "an END line is missing",
        pem::Error::IllegalSectionStart { .. } => "a BEGIN line is damaged",
        pem::Error::Base64Decode(_) => "the base64 between BEGIN and END is damaged",
        _ => "it is damaged",
    };
    TlsError::NotPem { path: path.to_owned(), why }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read_file(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|error| not_pem(path, &error))?;
    if chain.is_empty() { Err(TlsError::NoCertificate(path.to_owned())) } else { Ok(chain) }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read_file(path)?;
    let says = |mark: &[u8]| text.windows(mark.len()).any(|window| window == mark);
    if says(b"BEGIN ENCRYPTED PRIVATE KEY") || says(b"Proc-Type: 4,ENCRYPTED") {
        return Err(TlsError::EncryptedKey(path.to_owned()));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey(path.to_owned()),
        error => not_pem(path, &error),
    })
}

/// A certificate that vouches for itself, and its key: ECDSA with P-256, good from yesterday on, because clocks differ.
fn make(names: &[String]) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "informer gateway");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let midnight = |time: Timestamp| {
        let day = time.to_zoned(TimeZone::UTC);
        rcgen::date_time_ymd(day.year().into(), day.month().unsigned_abs(), day.day().unsigned_abs())
    };
    let now = Timestamp::now();
    params.not_before = midnight(now - SignedDuration::from_hours(24));
    params.not_after = midnight(now + GOOD_FOR);
    let certificate = params.self_signed(&key)?;
    Ok((certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()).into()))
}

fn fingerprint(key: &CertifiedKey) -> String {
    let Some(certificate) = key.cert.first() else { return String::new() };
    let mut text = String::new();
    for byte in digest::digest(&digest::SHA256, certificate).as_ref() {
        let colon = if text.is_empty() { "" } else { ":" };
        // Writing to a string does not fail.
        let _ = write!(text, "{colon}{byte:02X}");
    }
    text
}

#[cfg(test)]
mod tests;
