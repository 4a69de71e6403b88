package template

const (
	// defaultSteps take about a second on a slow machine.
	defaultSteps = 1_000_000
	// defaultBytes limits the memory that all functions together allocate.
	defaultBytes = 64 << 20
)

// A Budget limits the work of all templates of one Secret. It counts steps and does not use a clock, so that a loaded
// machine does not fail a good template. It is not safe for concurrent use.
type Budget struct {
	steps int
	bytes int
}

// NewBudget returns the budget of one Secret: a million steps and 64 MiB. A step is about one part of an action, or
// 256 bytes that a plain text function reads.
func NewBudget() *Budget { return NewBudgetOf(defaultSteps, defaultBytes) }

// NewBudgetOf returns a budget with a number of steps and bytes.
func NewBudgetOf(steps, bytes int) *Budget { return &Budget{steps: steps, bytes: bytes} }

// Spend takes steps from the budget, and reports whether it had enough.
func (b *Budget) Spend(steps int) bool { return b.spend(steps, 0) == nil }

// spend takes steps and bytes from the budget, or returns an error if it does not have enough. After an error the
// budget is empty.
func (b *Budget) spend(steps, bytes int) error {
	if steps < 0 || bytes < 0 || steps > b.steps {
		b.steps = 0
		return &failure{"the templates of this Secret do too much work; make them simpler, or their loops shorter"}
	}
	if bytes > b.bytes {
		b.steps, b.bytes = 0, 0
		return &failure{"the templates of this Secret need too much memory; make them simpler, or their loops shorter"}
	}
	b.steps -= steps
	b.bytes -= bytes
	return nil
}
