-- Bit aggregates of a NULL literal. LatsDB: two empty texts. Right: (0, 18446744073709551615). Mended.
-- MySQL's manual, "Aggregate Function Descriptions": a NULL literal is evaluated as a number, not as a binary string.
SELECT BIT_OR(NULL), BIT_AND(NULL);
