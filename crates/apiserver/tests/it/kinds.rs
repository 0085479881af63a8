//! The table of built-in kinds against the types of `k8s-openapi`.

use std::any::TypeId;

use informer_model::{BUILTIN_KINDS, BuiltinKind};
use k8s_openapi::{ListableResource, NamespaceResourceScope, Resource};

/// What `k8s-openapi` says about a kind, beside what a row of the table says.
struct Compared {
    row: Row,
    typed: Row,
    accessor: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
}

/// That this is called with a type is the proof that the type can be listed.
fn compare<T: ListableResource<Scope: 'static>>(row: Row, accessor: &'static str) -> Compared {
    let typed = Row {
        group: <T as Resource>::GROUP,
        version: <T as Resource>::VERSION,
        kind: <T as Resource>::KIND,
        plural: <T as Resource>::URL_PATH_SEGMENT,
        namespaced: TypeId::of::<T::Scope>() == TypeId::of::<NamespaceResourceScope>(),
    };
    assert_eq!(<T as ListableResource>::LIST_KIND, format!("{}List", typed.kind));
    Compared { row, typed, accessor }
}

macro_rules! comparisons {
    ($(group $group:ident = $name:literal $group_when:tt in $($path:ident)::+ {
        $(version $version:ident $version_when:tt {
            $($kind:ident $accessor:ident $plural:literal $scope:ident $kind_when:tt $facts:tt)*
        })*
    })*) => {
        /// Every row of the table that holds in the enabled version of Kubernetes, with its type.
        fn rows() -> Vec<Compared> {
            let mut rows = Vec::new();
            $(informer_model::if_minor! { $group_when {
                use k8s_openapi::$($path)::+;
                $(informer_model::if_minor! { $version_when {
                    $(informer_model::if_minor! { $kind_when {
                        let row = Row {
                            group: $name,
                            version: stringify!($version),
                            kind: stringify!($kind),
                            plural: $plural,
                            namespaced: stringify!($scope) == "namespaced",
                        };
                        rows.push(compare::<$group::$version::$kind>(row, stringify!($accessor)));
                    } })*
                } })*
            } })*
            rows
        }
    };
}
informer_model::for_each_kind!(comparisons);

#[test]
fn every_row_says_what_the_type_of_its_kind_says() {
    for Compared { row, typed, accessor } in rows() {
        assert_eq!(row, typed);
        assert_eq!(accessor.replace('_', ""), row.plural);
    }
}

#[test]
fn the_table_as_data_has_the_rows_of_the_table_as_code() {
    let enabled = |minor: u32| {
        let rows = BUILTIN_KINDS.iter().filter(move |row| row.is_in(minor));
        rows.map(|&BuiltinKind { group, version, kind, plural, namespaced, .. }| Row {
            group,
            version,
            kind,
            plural,
            namespaced,
        })
    };
    let rows: Vec<Row> = rows().into_iter().map(|compared| compared.row).collect();
    assert_eq!(rows, enabled(37).collect::<Vec<_>>());
}
