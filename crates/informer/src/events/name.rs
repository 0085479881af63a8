//! Names of events.

use informer_model::is_dns_subdomain;

/// What a name may have in all, and what the number in it takes.
const LONGEST: usize = 253;
const NUMBER: usize = ".0123456789abcdef".len();

/// The name of an event about an object of this name: `web-0.18a7c3f2b1d0e4c5`.
///
/// Not every object has a name that an event could have: then it is left out.
pub(super) fn event_name(object: &str, number: u64) -> String {
    let stem = object.get(..LONGEST - NUMBER).unwrap_or(object).trim_end_matches(['.', '-']);
    let stem = if is_dns_subdomain(stem) { stem } else { "event" };
    format!("{stem}.{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_testing::histories;
    use proptest::prelude::any;

    #[test]
    fn an_event_is_called_after_its_object_where_that_can_be() {
        assert_eq!(event_name("web-0", 0x18a7_c3f2_b1d0_e4c5), "web-0.18a7c3f2b1d0e4c5");
        for impossible in ["", "system:node", "../pods", "Web", "é"] {
            assert_eq!(event_name(impossible, 7), "event.0000000000000007");
        }
        let long = format!("{}.{}", "a".repeat(235), "b".repeat(17));
        assert_eq!(event_name(&long, 1), format!("{}.0000000000000001", "a".repeat(235)));
    }

    #[test]
    fn every_name_is_one_that_the_api_takes() {
        histories(&("\\PC{0,300}|[a-z.-]{230,260}", any::<u64>()), |(object, number)| {
            let name = event_name(&object, number);
            assert!(is_dns_subdomain(&name), "{name}");
        });
    }
}
