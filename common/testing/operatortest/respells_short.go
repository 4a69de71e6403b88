//go:build !long

package operatortest

const respellings = 12
