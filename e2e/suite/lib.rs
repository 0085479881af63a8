//! One suite, two servers: each scenario of `tests/suite` is played on the embedded API server and, where
//! `INFORMER_CONTROL_PLANE` names a built `e2e/control-plane`, on a real kube-apiserver.
//!
//! What a client sees is written down line by line and compared with `expected/<scenario>.txt`, which was written
//! from the real server. So the embedded one is held to what the real one said, also on a machine without it.
//! `e2e/run` builds the control plane and runs all of it; with `INFORMER_E2E_UPDATE=1` the files are written anew.
//! A difference that stays is three kinds of lines in its file, `known:` with the reason, `real:` and `embedded:`.
