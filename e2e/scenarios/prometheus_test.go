//go:build long

package scenarios

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
)

// prometheus stores scraped metrics and answers queries, with Prometheus' own packages.
type prometheus struct {
	storage *teststorage.TestStorage
	engine  *promql.Engine
	// last are the series of the previous scrape.
	last map[string]labels.Labels
	at   int64
}

// A scrapedPage is the metrics page of a module.
type scrapedPage struct{ job, namespace, text string }

func newPrometheus(t *testing.T) *prometheus {
	t.Helper()
	return &prometheus{storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)}
}

// append adds the samples of a scrape, and marks series without a sample as stale.
func (p *prometheus) append(pages []scrapedPage) error {
	p.at = max(p.at+1, time.Now().UnixMilli())
	to := p.storage.Appender(context.Background())
	now := map[string]labels.Labels{}
	for _, page := range pages {
		if err := p.parse(to, page, now); err != nil {
			return errors.Join(err, to.Rollback())
		}
	}
	for name, series := range p.last {
		if _, ok := now[name]; ok {
			continue
		}
		if _, err := to.Append(0, series, p.at, math.Float64frombits(value.StaleNaN)); err != nil {
			return errors.Join(err, to.Rollback())
		}
	}
	p.last = now
	return to.Commit()
}

func (p *prometheus) parse(to storage.Appender, page scrapedPage, now map[string]labels.Labels) error {
	parser, err := textparse.New([]byte(page.text), "text/plain", labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, sample := parser.Series()
		var series labels.Labels
		parser.Labels(&series)
		b := labels.NewBuilder(series).Set("job", page.job)
		// A label of the target takes precedence over one of the module.
		b.Set("namespace", page.namespace)
		series = b.Labels()
		if _, err := to.Append(0, series, p.at, sample); err != nil {
			return err
		}
		now[series.String()] = series
	}
}

// query returns the present number of series of a query.
func (p *prometheus) query(ctx context.Context, text string) (int, error) {
	q, err := p.engine.NewInstantQuery(ctx, p.storage, nil, text, time.UnixMilli(p.at))
	if err != nil {
		return 0, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return 0, result.Err
	}
	if len(result.Warnings) > 0 {
		return 0, result.Warnings.AsErrors()[0]
	}
	vector, err := result.Vector()
	return len(vector), err
}
