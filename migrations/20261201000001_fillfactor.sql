-- A batch updates all rows of a page in one transaction, and what one transaction made dead it cannot reuse: updates
-- stay HOT only while the page has room for all of them. Counts for pages that are written from now on.
ALTER TABLE claims SET (fillfactor = 50);

UPDATE schema_info SET version = 2;
