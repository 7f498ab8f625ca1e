package metrics_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zqueue/zqueue/middleware/metrics"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

func TestMain(m *testing.M) { os.Exit(zqtest.Main(m)) }

// kit is a metrics whose numbers can be read.
type kit struct {
	*metrics.Metrics
	t      *testing.T
	reader *sdkmetric.ManualReader
}

func newKit(t *testing.T) *kit {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	m, err := metrics.New(metrics.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		t.Fatal(err)
	}
	return &kit{Metrics: m, t: t, reader: reader}
}

// collect reads all metrics, as a scrape does.
func (k *kit) collect() []metricdata.Metrics {
	k.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := k.reader.Collect(context.Background(), &rm); err != nil {
		k.t.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, scope := range rm.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	return all
}

// series names a point: its metric, and its attributes but messaging.system, which all have.
func (k *kit) series(name string, set attribute.Set) string {
	k.t.Helper()
	if v, ok := set.Value("messaging.system"); !ok || v.AsString() != "zq" {
		k.t.Errorf("%s without messaging.system", name)
	}
	var list []string
	for _, a := range set.ToSlice() { // sorted by key
		if a.Key != "messaging.system" {
			list = append(list, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
	}
	return name + "{" + strings.Join(list, ",") + "}"
}

// points are all series with their values; of a histogram, how many it has measured.
func (k *kit) points() map[string]float64 {
	k.t.Helper()
	found := map[string]float64{}
	for _, m := range k.collect() {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				found[k.series(m.Name, p.Attributes)] = float64(p.Value)
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				found[k.series(m.Name, p.Attributes)] = float64(p.Value)
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				found[k.series(m.Name, p.Attributes)] = p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				found[k.series(m.Name, p.Attributes)] = float64(p.Count)
			}
		default:
			k.t.Errorf("%s is a %T", m.Name, m.Data)
		}
	}
	return found
}

// want compares all points with these.
func (k *kit) want(what string, want map[string]float64) {
	k.t.Helper()
	if diff := cmp.Diff(want, k.points()); diff != "" {
		k.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// only are the points whose series begin so.
func (k *kit) only(prefix string) map[string]float64 {
	k.t.Helper()
	all := k.points()
	maps.DeleteFunc(all, func(name string, _ float64) bool { return !strings.HasPrefix(name, prefix) })
	return all
}

func nothing(context.Context, *zq.Delivery) error { return nil }
