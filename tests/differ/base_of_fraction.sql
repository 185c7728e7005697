-- BIN and OCT of a fraction, and of an empty text. LatsDB: (11, 12, 0). Right: (10, 11, NULL). Mended.
SELECT BIN(2.5), OCT(9.5), BIN('');
