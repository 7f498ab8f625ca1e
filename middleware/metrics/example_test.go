package metrics_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zqueue/zqueue/middleware/metrics"
	"github.com/zqueue/zqueue/zqfx/zq"
	"github.com/zqueue/zqueue/zqfx/zq/zqtest"
)

// Its three parts go to the producer, around the handler, and to the consumer; Watch adds the queue's gauges.
func ExampleNew() {
	ctx := context.Background()
	server, err := zqtest.StartEmbedded() // a real program connects to its Redis
	check(err)
	defer server.Close()
	rdb := server.Client()

	reader := sdkmetric.NewManualReader() // a real program has an exporter
	m, err := metrics.New(metrics.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	check(err)

	p, err := zq.NewProducer(rdb, "orders", zq.WithSendMiddleware(m.Send()))
	check(err)
	for _, id := range []string{"o-1", "o-2"} {
		_, err = p.Enqueue(ctx, zq.Message{ID: id})
		check(err)
	}
	inspector, err := zq.NewInspector(rdb, "orders")
	check(err)
	stop, err := m.Watch("orders", inspector)
	check(err)

	ran := make(chan struct{}, 2)
	handler := zq.HandlerFunc(func(context.Context, *zq.Delivery) error {
		ran <- struct{}{}
		return nil
	})
	c, err := zq.NewConsumer(rdb, "orders", zq.Chain{m.Middleware()}.Then(handler), zq.ConsumerConfig{
		Observers: []zq.Observer{m.Observer()},
	})
	check(err)
	check(c.Start(ctx))
	<-ran
	<-ran
	check(c.Stop(ctx))

	fmt.Println("sent", total(ctx, reader, "messaging.client.sent.messages"))
	fmt.Println("consumed", total(ctx, reader, "messaging.client.consumed.messages"))
	fmt.Println("left", total(ctx, reader, "messaging.zq.queue.depth"))
	check(stop())
	// Output:
	// sent 2
	// consumed 2
	// left 0
}

// total adds up a metric over its attributes.
func total(ctx context.Context, reader sdkmetric.Reader, name string) (sum int64) {
	var all metricdata.ResourceMetrics
	check(reader.Collect(ctx, &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					sum += p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					sum += p.Value
				}
			}
		}
	}
	return sum
}

// check keeps the example to its story; a program returns the error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
