package main

import (
	"flag"

	"github.com/direct-secrets/direct-secrets/common/operator"
)

// An operatorFlag is a flag of every operator.
type operatorFlag struct{ Name, Type, Default, Text string }

func flags() []operatorFlag {
	fs := flag.NewFlagSet("MODULE", flag.ContinueOnError)
	var f operator.Flags
	f.Bind(fs)
	var out []operatorFlag
	fs.VisitAll(func(f *flag.Flag) {
		kind, text := flag.UnquoteUsage(f)
		if kind == "" {
			kind = "bool"
		}
		out = append(out, operatorFlag{Name: f.Name, Type: kind, Default: f.DefValue, Text: prose(text)})
	})
	return out
}
