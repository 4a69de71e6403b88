package client

import (
	"testing"

	"github.com/direct-secrets/direct-secrets/common/provider"
	"github.com/direct-secrets/direct-secrets/provider-onepassword/emulator"
)

// TestEmptyNote pushes an empty text to notes. An empty note is no property, so a push would write it again at each compare.
func TestEmptyNote(t *testing.T) {
	note := func(text string) emulator.Field {
		return emulator.Field{ID: "notesPlain", Purpose: purposeNotes, Label: notesLabel, Value: text}
	}
	cases := map[string]struct {
		reason string
		fields []emulator.Field
		value  string
		part   string
	}{
		"Set":     {"A note with text is not emptied by its property.", []emulator.Field{note("x")}, `{"notesPlain":""}`, `property "notesPlain": is the note of the item`},
		"Empty":   {"An empty note does not count as written.", []emulator.Field{note("")}, `{"notesPlain":""}`, `property "notesPlain": is the note of the item`},
		"Missing": {"An item without a note gets no empty one.", nil, `{"notesPlain":""}`, `property "notesPlain": is the note of the item`},
		"Field":   {"A field with the label can be empty.", []emulator.Field{{ID: "f", Label: notesLabel, Value: "x"}}, `{"notesPlain":""}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			srv := start(t)
			srv.Add(vaultName, emulator.Item{Title: "db", Fields: tc.fields})
			c := client(t, srv)
			_, err := c.Update(soon(t), db, observe(t, c, db), []byte(tc.value))
			switch {
			case tc.part != "":
				fails(t, tc.reason, err, provider.Invalid, tc.part)
			case err != nil || string(observe(t, c, db).Data) != tc.value:
				t.Errorf("%s\nUpdate(...): %v", tc.reason, err)
			}
			if n := srv.Count(writes...); tc.part != "" && n != 0 {
				t.Errorf("%s\n%d writes", tc.reason, n)
			}
		})
	}
}
