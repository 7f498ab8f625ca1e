package shop

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// MailServer takes a mail or refuses it.
type MailServer func(ctx context.Context, to, text string) error

// Mailer mails receipts. It is safe for concurrent use if its server is.
type Mailer struct {
	server MailServer
	tracer trace.Tracer
}

// NewMailer makes a mailer.
func NewMailer(server MailServer, traces trace.TracerProvider) *Mailer {
	return &Mailer{server, traces.Tracer("example.com/shop")}
}

// Receipt mails the receipt of an order.
func (m *Mailer) Receipt(ctx context.Context, o Order) error {
	ctx, span := m.tracer.Start(ctx, "mail receipt", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	err := m.server(ctx, o.Customer, "You have ordered "+o.Item+", order "+o.ID+".")
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
