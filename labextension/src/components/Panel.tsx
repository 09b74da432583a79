import * as React from 'react';

import { useDesk, useProblem } from '../desk';
import { detailOf } from '../words';
import { Jobs } from './Jobs';
import { Mine } from './Mine';
import { Pool } from './Pool';
import { Queue } from './Queue';
import { RequestSection } from './RequestForm';
import { Prose } from './Text';

export function Panel(): React.JSX.Element {
  const { words } = useDesk();
  const problem = useProblem();
  return (
    <div className={problem === null ? 'gpb-Panel-body' : 'gpb-Panel-body gpb-mod-stale'}>
      <div role="status">
        {problem !== null && (
          <p className="gpb-Banner">
            <Prose text={detailOf(problem, words)} />
          </p>
        )}
      </div>
      <Mine />
      <RequestSection />
      <Queue />
      <Pool />
      <Jobs />
    </div>
  );
}
