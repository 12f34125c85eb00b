"""What people see: documents and pictures, drawn from records and computing nothing."""
