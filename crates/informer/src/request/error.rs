//! Why a request failed.

use informer_model::Status;

/// Why a request failed, a list or a watch above all. The variants are what a reflector tells apart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The server answered, with an error.
    #[error("{0}")]
    Status(Box<Status>),
    /// The connection was refused: nothing listens at the server's address.
    #[error("connection refused: {0}")]
    Refused(String),
    /// The client has no credentials to ask with: the program that logs in failed, a token cannot be read.
    #[error("the client could not log in: {0}")]
    Credentials(String),
    /// No answer could be had: name resolution, TLS, a time limit.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// The connection broke in the middle of an answer.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The answer is not one of a Kubernetes API server.
    #[error("the answer is not that of a Kubernetes API server: {0}")]
    Malformed(String),
}

impl SourceError {
    /// The server's own words, if it answered.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }
}

impl From<Status> for SourceError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}
