// Package untranslated keeps kubectl from reading its translations, which takes a third of its start. Texts are English without them.
package untranslated

import "k8s.io/kubectl/pkg/util/i18n"

func init() {
	if err := i18n.SetLoadTranslationsFunc(func() error { return nil }); err != nil {
		panic(err)
	}
}
