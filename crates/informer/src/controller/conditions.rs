//! Conditions of a status.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};

/// A condition for [`set_condition`]: whether something is so, and why. The reason is one word in CamelCase.
pub fn condition(type_: &str, is_so: bool, reason: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if is_so { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(Timestamp::default()),
        observed_generation: None,
    }
}

/// Puts a condition in the place of the one of its type. The time of the transition stays as long as the status does, and is now otherwise, unless
/// the new one has a time of its own. Says whether anything has changed.
///
/// ```
/// use informer::controller::{condition, is_condition_true, set_condition};
///
/// let mut conditions = Vec::new();
/// assert!(set_condition(&mut conditions, condition("Ready", false, "Starting", "no pod is ready")));
/// assert!(!set_condition(&mut conditions, condition("Ready", false, "Starting", "no pod is ready")));
/// assert!(set_condition(&mut conditions, condition("Ready", true, "Started", "3 pods are ready")));
/// assert!(is_condition_true(&conditions, "Ready"));
/// ```
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition) -> bool {
    let there = conditions.iter_mut().find(|condition| condition.type_ == new.type_);
    let untimed = new.last_transition_time.0 == Timestamp::default();
    match there {
        Some(there) => {
            if there.status == new.status {
                new.last_transition_time = there.last_transition_time.clone();
            } else if untimed {
                new.last_transition_time = now();
            }
            let changed = *there != new;
            *there = new;
            changed
        }
        None => {
            if untimed {
                new.last_transition_time = now();
            }
            conditions.push(new);
            true
        }
    }
}

/// The API has times in whole seconds: what was written is then what is read.
fn now() -> Time {
    let seconds = Timestamp::from_second(Timestamp::now().as_second());
    Time(seconds.unwrap_or_default())
}

/// The condition of a type.
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether there is a condition of this type, and it is so.
pub fn is_condition_true(conditions: &[Condition], type_: &str) -> bool {
    find_condition(conditions, type_).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c41_the_time_of_a_transition_stays_as_long_as_the_status_does() {
        let old = Time(Timestamp::from_second(1_000).unwrap());
        let mut first = condition("Ready", false, "Starting", "");
        first.last_transition_time = old.clone();
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, first));
        assert!(
            set_condition(&mut conditions, condition("Ready", false, "Waiting", "for a volume")),
            "another reason"
        );
        assert_eq!((&conditions[0].last_transition_time, &*conditions[0].reason), (&old, "Waiting"));
        assert!(set_condition(&mut conditions, condition("Ready", true, "Started", "")));
        assert!(conditions[0].last_transition_time > old);
        assert_eq!(conditions[0].last_transition_time.0.subsec_nanosecond(), 0);
        assert!(set_condition(&mut conditions, condition("Paused", false, "NotPaused", "")));
        assert_eq!((conditions.len(), is_condition_true(&conditions, "Paused")), (2, false));
        assert!(find_condition(&conditions, "Missing").is_none());
    }
}
