//! A made-up cluster in motion.

use std::time::{Duration, Instant};

use informer_apiserver::{ApiServer, Churn};
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

/// Makes so many changes per second, for ever. Without any it just waits.
pub(crate) async fn keep_in_motion(server: ApiServer, churn: Option<Churn>, rate: f64) {
    let Some(mut churn) = churn.filter(|_| rate > 0.0) else { return std::future::pending().await };
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (started, mut made) = (Instant::now(), 0.0);
    let mut complained = false;
    loop {
        let now = ticks.tick().await;
        let due = (now.into_std() - started).as_secs_f64() * rate;
        // After a pause it goes on, it does not catch up.
        made = f64::max(made, due - rate.max(1.0));
        while made < due {
            made += 1.0;
            let Some(change) = churn.next(Timestamp::now(), &server) else { break };
            if let Err(status) = server.apply(change)
                && !std::mem::replace(&mut complained, true)
            {
                eprintln!("a change of the demo cluster was refused: {status}");
            }
        }
    }
}
