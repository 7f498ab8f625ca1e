package semconv

// SchemaURL is the version of the conventions that the names follow.
const SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

// Scopes are the names of the instrumentation scopes.
const (
	TracingScope = "github.com/zqueue/zqueue/middleware/tracing"
	MetricsScope = "github.com/zqueue/zqueue/middleware/metrics"
)

// System is the value of messaging.system. The conventions have none for a queue on Redis.
const System = "zq"
