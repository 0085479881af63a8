//! An accessor for every kind that Kubernetes has built in and that can be listed: `factory.core().v1().pods()`.
//!
//! There is one module for each API group and in it one for each version, made from
//! [`for_each_kind!`](informer_model::for_each_kind). Which there are depends on the version of Kubernetes that is
//! chosen by a feature of `k8s-openapi`. An accessor costs nothing until its informer is asked for.

use super::{ResourceInformer, SharedInformerFactory};

macro_rules! accessors {
    ($(group $group:ident = $name:literal $group_when:tt in $($path:ident)::+ {
        $(version $version:ident $version_when:tt {
            $($kind:ident $accessor:ident $plural:literal $scope:ident $kind_when:tt $facts:tt)*
        })*
    })*) => {
        /// Every kind that Kubernetes has built in, by group, version and name.
        impl SharedInformerFactory {
            $(informer_model::if_minor! { $group_when
                #[doc = concat!("The kinds of the API group `", $name, "`.")]
                pub fn $group(&self) -> $group::Group<'_> {
                    $group::Group(self)
                }
            })*
        }

        $(informer_model::if_minor! { $group_when
            #[doc = concat!("The API group `", $name, "`.")]
            pub mod $group {
                use super::{ResourceInformer, SharedInformerFactory};
                use k8s_openapi::$($path)::+ as kinds;

                /// The versions of the group.
                #[derive(Debug, Clone, Copy)]
                pub struct Group<'a>(pub(super) &'a SharedInformerFactory);

                impl<'a> Group<'a> {
                    $(informer_model::if_minor! { $version_when
                        #[doc = concat!("The kinds of `", $name, "` in version `", stringify!($version), "`.")]
                        pub fn $version(self) -> $version::Version<'a> {
                            $version::Version(self.0)
                        }
                    })*
                }

                $(informer_model::if_minor! { $version_when
                    #[doc = concat!("The API group `", $name, "` in version `", stringify!($version), "`.")]
                    pub mod $version {
                        use super::{ResourceInformer, SharedInformerFactory, kinds};

                        /// The kinds of the version.
                        #[derive(Debug, Clone, Copy)]
                        pub struct Version<'a>(pub(super) &'a SharedInformerFactory);

                        impl Version<'_> {
                            $(informer_model::if_minor! { $kind_when
                                #[doc = concat!("The informer and the lister of `", $plural, "`.")]
                                pub fn $accessor(self) -> ResourceInformer<kinds::$version::$kind> {
                                    ResourceInformer::typed(self.0.clone())
                                }
                            })*
                        }
                    }
                })*
            }
        })*
    };
}

informer_model::for_each_kind!(accessors);
