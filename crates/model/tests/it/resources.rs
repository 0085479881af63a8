//! Names of resources and kinds on generated texts.

use informer_model::{GroupVersionKind, GroupVersionResource, ResourceArg};
use informer_testing::histories;
use proptest::{collection::vec, option, prelude::*, sample::select};

fn version() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "v[1-9][0-9]{0,2}((alpha|beta)[1-9][0-9]{0,1})?",
        1 => "[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?",
    ]
}

/// Groups in which parts look like versions, and the core group.
fn group() -> impl Strategy<Value = String> {
    let part = prop_oneof![2 => "[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?".boxed(), 1 => version().boxed()];
    prop_oneof![1 => Just(String::new()), 4 => vec(part, 1..4).prop_map(|parts| parts.join("."))]
}

#[test]
fn a_full_name_is_read_back_the_same() {
    let name = "[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?";
    histories(&(group(), version(), name), |(group, version, resource)| {
        let full = GroupVersionResource::new(&group, &version, &resource).unwrap();
        assert_eq!((full.version(), full.resource()), (version.as_str(), resource.as_str()));
        let text = full.to_string();
        assert_eq!(text.parse(), Ok(full.clone()), "{text}");
        assert_eq!(text.parse::<ResourceArg>(), Ok(full.clone().into()), "{text}");
        assert!(ResourceArg::from(full.clone()).matches(&full));
        let slashes = format!("{}/{version}/{resource}", if group.is_empty() { "core" } else { &group });
        assert_eq!(slashes.parse(), Ok(full));
    });
}

#[test]
fn a_kind_is_read_back_the_same() {
    histories(&(group(), version(), "[A-Za-z]([-A-Za-z0-9]{0,6}[a-z0-9])?"), |(group, version, kind)| {
        let full = GroupVersionKind::new(&group, &version, &kind).unwrap();
        assert_eq!(full.to_string().parse(), Ok(full.clone()));
        assert_eq!(GroupVersionKind::from_api_version(&full.api_version(), full.kind()), Ok(full));
    });
}

#[test]
fn any_text_is_read_or_refused_within_its_bounds() {
    let check = |text: &str| {
        match text.parse::<ResourceArg>() {
            Ok(arg) => {
                assert_eq!(arg.to_string().parse(), Ok(arg.clone()));
                assert_eq!(text.parse::<GroupVersionResource>().ok(), arg.to_resource(), "{text}");
            }
            Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
        }
        match text.parse::<GroupVersionKind>() {
            Ok(kind) => assert_eq!(kind.to_string().parse(), Ok(kind)),
            Err(error) => assert!(text.is_char_boundary(error.position), "{error}"),
        }
        if let Err(error) = GroupVersionKind::from_api_version(text, text) {
            assert!(text.is_char_boundary(error.position), "{error}");
        }
    };
    let words = ["pods", "v1", "v1beta1", "apps", "core", ".", ".", "/", "-", "A", "é", "..", "0", "\n"];
    histories(&any::<String>(), |text| check(&text));
    histories(&vec(any::<u8>(), 0..100), |bytes| check(&String::from_utf8_lossy(&bytes)));
    histories(&vec(select(words.to_vec()), 0..9), |words| check(&words.concat()));
    let slip = option::of((any::<prop::sample::Index>(), any::<char>()));
    histories(&("[a-z]{1,4}(\\.v1)?(\\.[a-z]{1,3}){0,2}", slip), |(text, slip)| {
        let mut text: Vec<char> = text.chars().collect();
        if let Some((at, c)) = slip {
            text.insert(at.index(text.len() + 1), c);
        }
        check(&text.into_iter().collect::<String>());
    });
}
