// Package kit is what all controllers share: the walk over one object, and what bounds, cancels and delays it.
package kit
