"""Small models trained by the hundred: what strangers, twins and descendants look like."""
